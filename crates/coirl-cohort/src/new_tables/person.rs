//! One person, by what is measured now: the state, and how well it is known.

use super::reference::{Reference, Role, Unusual};
use crate::encoder::Encoder;
use crate::measurements::Measurement;
use crate::spec::{Impute, Spec};
use crate::stays::Stay;
use crate::table::Table;
use coirl::model::{Context, StateId};
use coirl::nearest::near;
use coirl::{Error, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is known of a person, by the names of columns, in the units of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Person {
    /// Fields of the context.
    pub fields: BTreeMap<String, f64>,
    /// What is measured now.
    pub measured: BTreeMap<String, f64>,
    /// What was measured and given in the step before; nothing at the first step.
    pub before: Option<BTreeMap<String, f64>>,
}

/// A field, as it goes into the context.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownField {
    /// The column.
    pub column: String,
    /// Its value; the training median where nothing was given.
    pub value: f64,
    /// Whether it was given.
    pub given: bool,
}

/// A coordinate of the state, as it goes into the distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Known {
    /// What it is called.
    pub name: String,
    /// Its value, in the unit of the column.
    pub value: f64,
    /// Whether it was given, now or in the step before; otherwise it is filled in as in training.
    pub given: bool,
    /// What those in the state have, on average.
    pub typical: f64,
}

/// A person in the numbers of the cohort.
#[derive(Debug, Clone, PartialEq)]
pub struct Recognised {
    /// The state.
    pub state: StateId,
    /// The context.
    pub context: Context,
    /// Distance from the centroid of the state.
    pub distance: f64,
    /// The fields.
    pub fields: Vec<KnownField>,
    /// The measurements.
    pub known: Vec<Known>,
    /// Values outside all training values.
    pub unusual: Vec<Unusual>,
}

impl Person {
    /// Finds the state and the context.
    pub fn recognise(&self, spec: &Spec, encoder: &Encoder, reference: &Reference) -> Result<Recognised> {
        self.check(encoder)?;
        let own = || encoder.contexts.fields.iter();
        let value = |field: &crate::ContextField| self.fields.get(&field.column).copied().unwrap_or(f64::NAN);
        let context = encoder.contexts.context(&own().map(value).collect::<Vec<_>>())?;
        let fields = own().map(|field| {
            let given = field.knows(value(field));
            KnownField { column: field.column.clone(), value: if given { value(field) } else { field.fill }, given }
        });
        let point = self.point(encoder)?;
        let states = encoder.states(point.clone())?;
        let state = states.first().copied().ok_or_else(|| Error::shape("rows", "1", 0))?;
        let centroid = encoder.centroids.rows().nth(state.index()).unwrap_or_default();
        let squared = point.iter().zip(centroid).map(|(x, c)| (f64::from(*x) - c).powi(2));
        let known =
            encoder.measurements.iter().zip(point.iter().zip(centroid)).map(|(measurement, (x, typical))| Known {
                name: measurement.name(),
                value: measurement.in_unit(f64::from(*x)),
                given: self.gives(measurement),
                typical: measurement.in_unit(*typical),
            });
        let each = |values: &BTreeMap<String, f64>, role: Role| {
            reference.unusual(spec, role, values.iter().map(|(name, x)| (name.as_str(), *x)))
        };
        let mut unusual = each(&self.fields, Role::Field);
        unusual.extend(each(&self.measured, Role::Measurement));
        for role in [Role::Measurement, Role::Action] {
            unusual.extend(self.before.iter().flat_map(|before| each(before, role)));
        }
        // A column may be both a measurement and a dose of the step before.
        unusual.dedup_by(|a, b| a.column == b.column && a.value == b.value);
        Ok(Recognised {
            state,
            context,
            distance: squared.sum::<f64>().sqrt(),
            fields: fields.collect(),
            known: known.collect(),
            unusual,
        })
    }

    /// Refuses names that nothing is called, with the nearest that is.
    fn check(&self, encoder: &Encoder) -> Result<()> {
        let fields: Vec<&str> = encoder.contexts.fields.iter().map(|field| field.column.as_str()).collect();
        let all = || encoder.measurements.iter();
        let now: Vec<&str> =
            all().filter(|own| !own.is_before() && own.lag == 0).map(|own| own.column.as_str()).collect();
        let mut before: Vec<&str> = all().map(|own| own.column.as_str()).collect();
        before.sort_unstable();
        before.dedup();
        for (place, given, names) in [
            ("context", Some(&self.fields), &fields),
            ("measure", Some(&self.measured), &now),
            ("before", self.before.as_ref(), &before),
        ] {
            let Some(unknown) = given.and_then(|given| given.keys().find(|name| !names.contains(&name.as_str())))
            else {
                continue;
            };
            let late = place == "measure" && before.contains(&unknown.as_str());
            let meant = match near(unknown, names) {
                _ if late => "; the state has it of the step before: give it there".to_owned(),
                Some(meant) => format!("; the nearest is '{meant}'"),
                None => format!("; expected some of {}", names.join(", ")),
            };
            return Err(Error::Spec { place: place.into(), reason: format!("there is no '{unknown}'{meant}") });
        }
        Ok(())
    }

    /// Whether a coordinate rests on something that was given.
    fn gives(&self, measurement: &Measurement) -> bool {
        let column = &measurement.column;
        let there = |values: &BTreeMap<String, f64>| values.get(column).is_some_and(|x| measurement.accepts(*x));
        let earlier = self.before.as_ref().is_some_and(there);
        if measurement.is_before() {
            return earlier || self.before.is_none();
        }
        match measurement.lag {
            0 => there(&self.measured) || (earlier && measurement.impute == Impute::CarryForward),
            1 => earlier,
            _ => false,
        }
    }

    /// The point, coded as that of the last row of a stay.
    fn point(&self, encoder: &Encoder) -> Result<Vec<f32>> {
        let mut columns: Vec<&str> = encoder.measurements.iter().map(|own| own.column.as_str()).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut table = Table::new(&columns, false);
        let rows: Vec<&BTreeMap<String, f64>> = self.before.iter().chain([&self.measured]).collect();
        for (t, row) in rows.iter().enumerate() {
            let cell = |name: &&str| row.get(*name).copied().unwrap_or(f64::NAN);
            table.push("person", None, t as f64, columns.iter().map(cell))?;
        }
        let stay = Stay { number: 0, patient: 0, rows: (0..rows.len() as u32).collect(), cut: false };
        let (points, _) = encoder.measurements.points_of(&table, &stay)?;
        Ok(points[(rows.len() - 1) * encoder.measurements.len()..].to_vec())
    }
}
