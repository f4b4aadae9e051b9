//! Tables with a row per observation, as FHIR servers export them: a subject, an encounter, a time, a code and a value. They become tables with a row
//! per stay and step.
//!
//! A column of the spec is a column of the table where it has one of that name, and otherwise what rows with that code say. In a step the last
//! measurement counts, or their mean; doses are added up, and a step without one has none given. A field that stays the same is what was said first, at
//! whatever time, an outcome what was said last; both are in every row of the stay and open no step. Steps between the first and the last
//! measurement or dose of a stay all have a row, empty where nothing was measured. Cost: linear in the observations, all of which are held.

use super::spec::{Several, Spec};
use super::table::Table;
use coirl::nearest::near;
use coirl::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Steps of a stay beyond which times or the length of a step are wrong.
const MOST_STEPS: i64 = 100_000;
/// Codes that are kept in mind for a message.
const MOST_CODES: usize = 1000;

/// What becomes of several values of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One per step, the last or the mean.
    Measured(Several),
    /// One per step, the sum.
    Given,
    /// One per stay, the first.
    Field,
    /// One per stay, the last.
    End,
}

/// What was observed in one stay.
#[derive(Debug, Clone, Default)]
struct Observed {
    stay: String,
    patient: Option<String>,
    /// Column, time and value.
    values: Vec<(u32, f64, f64)>,
}

/// Observations as they are read.
#[derive(Debug, Clone)]
pub struct Observations {
    names: Vec<String>,
    kinds: Vec<Kind>,
    found: Vec<bool>,
    step: f64,
    with_patients: bool,
    stays: Vec<Observed>,
    numbers: HashMap<String, usize>,
    unused: BTreeSet<String>,
    rows: u64,
}

impl Observations {
    /// None yet, of the columns of a spec.
    pub fn new(spec: &Spec) -> Self {
        let several = spec.table.observations.as_ref().map(|own| own.several).unwrap_or_default();
        let names: Vec<String> = spec.columns().into_iter().map(str::to_owned).collect();
        let kind = |name: &String| match () {
            () if spec.action.doses.contains(name) => Kind::Given,
            () if spec.outcome.as_ref().is_some_and(|outcome| outcome.column == *name) => Kind::End,
            () if spec.action.column.as_ref() == Some(name) => Kind::Measured(Several::Last),
            () if spec.context.fields.contains(name) && !spec.state.measurements.contains(name) => Kind::Field,
            () => Kind::Measured(several),
        };
        Self {
            kinds: names.iter().map(kind).collect(),
            found: vec![false; names.len()],
            names,
            step: spec.cohort.step.value(),
            with_patients: spec.table.patient.is_some(),
            stays: Vec::new(),
            numbers: HashMap::new(),
            unused: BTreeSet::new(),
            rows: 0,
        }
    }

    /// Whether rows with this code are used.
    pub fn uses(&self, code: &str) -> bool {
        self.names.iter().any(|name| name == code)
    }

    /// Adds what a row says: of its code, where that is used, and of columns that the table has by their names. NaN says nothing.
    pub fn push<'a>(
        &mut self,
        stay: &str,
        patient: Option<&str>,
        time: f64,
        code: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<()> {
        self.rows += 1;
        let row = self.rows;
        let refuse = |column: &str, reason: String| Err(Error::Cell { row, column: column.into(), reason });
        if stay.is_empty() {
            return refuse("stay", "is empty; expected the id of a stay".into());
        }
        if self.with_patients && patient.is_none_or(str::is_empty) {
            return refuse("patient", "is empty; expected the id of a patient".into());
        }
        if !time.is_finite() {
            return refuse("time", format!("{time}; expected a finite number"));
        }
        if !self.uses(code) && self.unused.len() < MOST_CODES && !self.unused.contains(code) {
            self.unused.insert(code.to_owned());
        }
        let number = match self.numbers.get(stay) {
            Some(&number) => number,
            None => {
                self.numbers.insert(stay.to_owned(), self.stays.len());
                self.stays.push(Observed {
                    stay: stay.into(),
                    patient: patient.map(str::to_owned),
                    values: Vec::new(),
                });
                self.stays.len() - 1
            }
        };
        let own = &mut self.stays[number];
        if own.patient.as_deref() != patient {
            return refuse("patient", format!("'{}' in a stay of another patient", patient.unwrap_or_default()));
        }
        for (name, value) in values {
            let Some(column) = self.names.iter().position(|own| own == name) else { continue };
            self.found[column] = true;
            if value.is_infinite() {
                return refuse(name, format!("{value}; expected a finite number"));
            }
            if !value.is_nan() {
                own.values.push((column as u32, time, value));
            }
        }
        Ok(())
    }

    /// Rows so far.
    pub fn n_rows(&self) -> u64 {
        self.rows
    }

    /// The table with a row per stay and step.
    pub fn finish(self) -> Result<Table> {
        if let Some(missing) = self.found.iter().position(|found| !found) {
            let name = &self.names[missing];
            let codes: Vec<&str> = self.unused.iter().map(String::as_str).collect();
            let meant =
                near(name, &codes).map(|meant| format!("; the nearest that the spec does not use is '{meant}'"));
            let reason =
                format!("is no column of the table, and no row has it as its code{}", meant.unwrap_or_default());
            return Err(Error::Spec { place: name.clone(), reason });
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let mut table = Table::new(&names, self.with_patients);
        for own in &self.stays {
            self.append(own, &mut table)?;
        }
        Ok(table)
    }

    /// The rows of a stay.
    fn append(&self, own: &Observed, table: &mut Table) -> Result<()> {
        let mut values = own.values.clone();
        // Values of one time stay in the order of the table.
        values.sort_by(|a, b| a.1.total_cmp(&b.1));
        let step = |time: f64| (time / self.step + 1e-6).floor() as i64;
        let mut throughout = vec![f64::NAN; self.names.len()];
        let mut steps: BTreeMap<i64, Vec<(f64, f64)>> = BTreeMap::new();
        for &(column, time, value) in &values {
            let column = column as usize;
            match self.kinds[column] {
                Kind::Field if throughout[column].is_nan() => throughout[column] = value,
                Kind::Field => {}
                Kind::End => throughout[column] = value,
                kind => {
                    let cells = steps.entry(step(time)).or_insert_with(|| vec![(f64::NAN, 0.0); self.names.len()]);
                    let (sum, n) = &mut cells[column];
                    let adds = kind == Kind::Given || kind == Kind::Measured(Several::Mean);
                    *sum = if adds && *n > 0.0 { *sum + value } else { value };
                    *n += 1.0;
                }
            }
        }
        let (Some((&first, _)), Some((&last, _))) = (steps.first_key_value(), steps.last_key_value()) else {
            return Ok(());
        };
        if last - first >= MOST_STEPS {
            let reason = format!(
                "a stay has {} steps, more than {MOST_STEPS}: are its times right, and is the length of a step in their unit?",
                last.saturating_sub(first).saturating_add(1)
            );
            return Err(Error::Spec { place: "cohort.step".into(), reason });
        }
        for number in first..=last {
            let cells = steps.get(&number);
            let cell = |column: usize| {
                let (sum, n) = cells.map_or((f64::NAN, 0.0), |cells| cells[column]);
                match self.kinds[column] {
                    Kind::Field | Kind::End => throughout[column],
                    Kind::Given => {
                        if n > 0.0 {
                            sum
                        } else {
                            0.0
                        }
                    }
                    Kind::Measured(Several::Mean) => sum / n,
                    Kind::Measured(Several::Last) => sum,
                }
            };
            let time = number as f64 * self.step;
            table.push(&own.stay, own.patient.as_deref(), time, (0..self.names.len()).map(cell))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(several: &str) -> Spec {
        let text = format!(
            "[table]\nstay = \"encounter\"\ntime = \"effective\"\n[table.observations]\nseveral = \"{several}\"\n[cohort]\nstep = 4\n\
             [context]\nfields = [\"sex\"]\n[state]\nmeasurements = [\"hr\"]\n[action]\ndoses = [\"fluid\"]\n[outcome]\ncolumn = \"died\"\n"
        );
        Spec::from_toml(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    const ROWS: [(f64, &str, f64); 8] = [
        (5.0, "hr", 80.0),
        (0.0, "sex", 1.0),
        (7.0, "hr", 90.0),
        (6.0, "fluid", 100.0),
        (7.5, "fluid", 50.0),
        (17.0, "hr", 70.0),
        (17.0, "shoe size", 44.0),
        (99.0, "died", 1.0),
    ];

    fn table(several: &str) -> Result<Vec<[f32; 4]>> {
        let mut observations = Observations::new(&spec(several));
        for (time, code, value) in ROWS {
            observations.push("a", None, time, code, [(code, value)])?;
        }
        let table = observations.finish()?;
        let column = |name: &str| table.column(name).map(<[f32]>::to_vec);
        let (sex, hr, fluid, died) = (column("sex")?, column("hr")?, column("fluid")?, column("died")?);
        assert_eq!(table.times, [4.0, 8.0, 12.0, 16.0]);
        Ok((0..table.n_rows()).map(|row| [sex[row], hr[row], fluid[row], died[row]]).collect())
    }

    #[test]
    fn observations_become_rows_by_step() -> Result<()> {
        let rows = table("last")?;
        assert_eq!(rows[0], [1.0, 90.0, 150.0, 1.0]);
        // Nothing was measured and nothing given; who it is and how it ended is known throughout.
        assert!(rows[1][1].is_nan() && rows[1][0] == 1.0 && rows[1][2] == 0.0 && rows[1][3] == 1.0);
        assert_eq!(rows[3], [1.0, 70.0, 0.0, 1.0]);
        assert_eq!(table("mean")?[0], [1.0, 85.0, 150.0, 1.0]);
        Ok(())
    }

    #[test]
    fn codes_that_are_missing_and_ids_that_are_empty_are_refused() -> Result<()> {
        let mut observations = Observations::new(&spec("last"));
        observations.push("a", None, 0.0, "fluids", [])?;
        for name in ["hr", "sex", "died"] {
            observations.push("a", None, 0.0, name, [(name, 1.0)])?;
        }
        assert!(observations.push("", None, 0.0, "hr", []).is_err());
        assert!(observations.push("a", None, f64::NAN, "hr", []).is_err());
        let error = observations.finish().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("fluid") && error.contains("'fluids'"), "{error}");
        let mut far = Observations::new(&spec("last"));
        for (time, code) in [(0.0, "hr"), (1e9, "hr"), (0.0, "sex"), (0.0, "fluid"), (0.0, "died")] {
            far.push("a", None, time, code, [(code, 1.0)])?;
        }
        assert!(far.finish().is_err_and(|error| error.to_string().contains("cohort.step")));
        Ok(())
    }
}
