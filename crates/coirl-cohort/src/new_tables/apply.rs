//! A new table in the numbers of a fitted cohort.

use super::drift::Drift;
use super::reference::Reference;
use crate::build::recorded;
use crate::encoder::Encoder;
use crate::model::Ends;
use crate::recorded::TestStays;
use crate::spec::Spec;
use crate::stays::{Flow, assemble};
use crate::table::Table;
use coirl::Result;
use coirl::model::Cmdp;

/// New stays, coded as those of the cohort were.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Which stays were left out, and why.
    pub flow: Flow,
    /// The stays, all to score on.
    pub stays: TestStays,
    /// How far they are from training.
    pub drift: Drift,
}

/// Codes a new table. `spec` is that of the cohort; where it has no outcome any more because the table has none, nobody knows where the last
/// step of a stay leads, and its states end with that step.
pub fn apply(
    table: &Table,
    spec: &Spec,
    encoder: &Encoder,
    model: &Cmdp,
    reference: &Reference,
    ends: Ends,
) -> Result<Applied> {
    spec.check()?;
    let (stays, flow) = assemble(table, spec)?;
    let known = ends.with_outcome() == spec.outcome.is_some();
    let recorded = recorded(table, spec, encoder, known.then_some(ends), &stays)?;
    let drift = Drift::of(reference, encoder, model, table, &stays, &recorded)?;
    Ok(Applied { flow, stays: TestStays::new(recorded), drift })
}
