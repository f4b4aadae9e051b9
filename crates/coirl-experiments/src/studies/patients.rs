//! The paper's table of real patients, on simulated ones: a table is written, a model built from it, and every method scored on test patients.

use super::Run;
use crate::cohort::enter;
use crate::curves::Curve;
use crate::experiment::Entrant;
use coirl::{Error, Result};
use coirl_cohort::synthetic::{Clinician, Synthetic};
use coirl_cohort::{Spec, Table, build};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Settings of a study of patients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patients {
    /// Stays of the table.
    pub stays: usize,
    /// What clinicians want.
    pub clinician: Clinician,
    /// States of the model; by default as many as the table supports.
    #[serde(default)]
    pub states: Option<usize>,
    /// The preset that the model is built by: one for the table of the AI Clinician, which is the one that is written.
    #[serde(default = "usual_preset")]
    pub preset: String,
}

fn usual_preset() -> String {
    "ai-clinician".into()
}

/// Columns of a stay and its time there.
const STAY: &str = "icustayid";
const TIME: &str = "bloc";

impl Patients {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        // One table for all seeds, as there is one of real patients; seeds split it anew.
        let synthetic = Synthetic { stays: self.stays, clinician: self.clinician, ..Synthetic::default() };
        let mut spec = Spec::preset(&self.preset)?;
        spec.state.clusters = self.states.or(spec.state.clusters);
        // Simulated clinicians decide anew at every step.
        spec.action.previous = false;
        spec.check()?;
        let table = table(&synthetic, &spec)?;
        let cohort = build(&table, &spec, run.seed, |_| match (run.watcher)("building", 0.0) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(()),
        })?;
        let mut curves = run.each(methods, |entrant| {
            let fared = enter(entrant, &cohort, Some(&synthetic), &mut ())?;
            let curve = |(measure, y): (&str, f64)| Curve::new(&entrant.name, measure, [(self.stays as f64, y)]);
            let measures = [
                ("same action by step", Some(fared.by_step)),
                ("same action by visited state", Some(fared.by_visited_state)),
                ("macro-F1", Some(fared.macro_f1)),
                ("true value above random", fared.true_value),
            ];
            Ok(measures.into_iter().filter_map(|(name, y)| Some(curve((name, y?)))).collect())
        })?;
        if let Some(majority) = majority(&cohort) {
            let point = [(self.stays as f64, majority)];
            curves.push(Curve::new("one action everywhere", "same action by step", point));
        }
        Ok(curves)
    }
}

/// Share of the commonest action of the test steps.
fn majority(cohort: &coirl_cohort::Cohort) -> Option<f64> {
    let mut counts = vec![0u32; cohort.encoder.actions.len()];
    for stay in cohort.test.stays() {
        stay.trajectory.actions.iter().for_each(|action| counts[action.index()] += 1);
    }
    let all: u32 = counts.iter().sum();
    counts.into_iter().max().filter(|_| all > 0).map(|most| f64::from(most) / f64::from(all))
}

/// The rows of a synthetic cohort, as far as a spec needs them.
fn table(synthetic: &Synthetic, spec: &Spec) -> Result<Table> {
    let all = Synthetic::columns();
    let at = |name: &str| all.iter().position(|column| *column == name);
    let columns = spec.columns();
    let missing =
        |name: &str| Error::Spec { place: "study".into(), reason: format!("the table has no column '{name}'") };
    let places: Vec<usize> = columns.iter().map(|name| at(name).ok_or_else(|| missing(name))).collect::<Result<_>>()?;
    let (stay_at, time_at) = (at(STAY).ok_or_else(|| missing(STAY))?, at(TIME).ok_or_else(|| missing(TIME))?);
    let mut table = Table::new(&columns, false);
    let mut refused = Ok(());
    synthetic.generate(|stay| {
        for row in &stay.rows {
            let cells = places.iter().map(|&i| row[i]);
            refused = table.push(&format!("{}", row[stay_at]), None, row[time_at], cells);
            if refused.is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    refused.map(|()| table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_what_its_spec_reads() -> Result<()> {
        let synthetic = Synthetic { stays: 20, ..Synthetic::default() };
        let mut rows = 0;
        synthetic.generate(|stay| {
            rows += stay.rows.len();
            ControlFlow::Continue(())
        })?;
        for preset in ["ai-clinician", "coirl-paper"] {
            let spec = Spec::preset(preset)?;
            assert_eq!((spec.table.stay.as_str(), spec.table.time.as_str()), (STAY, TIME), "{preset}");
            let table = table(&synthetic, &spec)?;
            assert_eq!((table.n_stays(), table.n_rows()), (20, rows), "{preset}");
        }
        Ok(())
    }
}
