//! Where the columns that a spec names are in a file.

use super::listed;
use crate::failure::Failure;
use coirl::nearest::near;
use coirl_cohort::{Spec, TableSpec};
use std::path::Path;

/// Where the columns of a spec are in a file.
pub(super) struct Columns<'s> {
    pub(super) stay: usize,
    pub(super) patient: Option<usize>,
    pub(super) time: usize,
    pub(super) numbers: Vec<usize>,
    pub(super) names: Vec<&'s str>,
    /// The columns of the code and of the value, where a row is an observation.
    pub(super) observed: Option<[usize; 2]>,
}

impl<'s> Columns<'s> {
    pub(super) fn find(path: &Path, header: &[String], spec: &'s Spec) -> Result<Self, Failure> {
        let used = spec.columns();
        let TableSpec { stay, time, patient, .. } = &spec.table;
        let keys = [Some(stay.as_str()), Some(time.as_str()), patient.as_deref()];
        let position = |name: &str, place: &str| {
            let mut found = (0..header.len()).filter(|&i| header[i] == name);
            match (found.next(), found.next()) {
                (Some(at), None) => Ok(at),
                (Some(_), Some(_)) => Err(Failure::in_file(path, format!("has two columns {name}; expected one"))),
                (None, _) => {
                    // What has its place in the spec is not what is missing.
                    let free = |column: &&str| !used.contains(column) && !keys.contains(&Some(*column));
                    let candidates: Vec<&str> = header.iter().map(String::as_str).filter(free).collect();
                    let others = match near(name, &candidates) {
                        Some(meant) => format!("the nearest is '{meant}'"),
                        None if candidates.is_empty() => "the spec uses all others".into(),
                        None => format!("columns that the spec does not use are {}", listed(&candidates)),
                    };
                    Err(Failure::in_file(path, format!("has no column '{name}' ({place}); {others}")))
                }
            }
        };
        let names = used.clone();
        let place = |name: &str| match () {
            () if spec.context.columns().any(|field| field == name) => "a field of the context",
            () if spec.state.measurements.iter().any(|field| field == name) => "a measurement",
            () if spec.state.column.as_deref() == Some(name) => "the number of the state",
            () if spec.outcome.as_ref().is_some_and(|outcome| outcome.column == name) => "the outcome",
            () if spec.cohort.keep.contains_key(name) => "cohort.keep",
            () if spec.cohort.plausible.contains_key(name) => "cohort.plausible",
            () => "an action",
        };
        let observed = match &spec.table.observations {
            Some(own) => Some([
                position(&own.code, "table.observations.code")?,
                position(&own.value, "table.observations.value")?,
            ]),
            None => None,
        };
        // What is no column is a code.
        let names: Vec<&str> = match observed {
            Some(_) => names.into_iter().filter(|name| header.iter().any(|own| own == name)).collect(),
            None => names,
        };
        Ok(Self {
            stay: position(&spec.table.stay, "table.stay")?,
            patient: spec.table.patient.as_deref().map(|name| position(name, "table.patient")).transpose()?,
            time: position(&spec.table.time, "table.time")?,
            numbers: names.iter().map(|name| position(name, place(name))).collect::<Result<_, _>>()?,
            names,
            observed,
        })
    }
}
