//! Against a truth that is known.

use super::markup::facts;
use super::page::Section;
use crate::failure::Failure;
use crate::fitting::{Report, Truth};
use coirl::methods::Fitted;
use coirl::model::Cmdp;
use coirl::score::Examination;
use std::collections::BTreeMap;

/// How the agent compares with the expert whose mapping is known.
pub(crate) fn against_the_truth(model: &Cmdp, fitted: &Fitted, truth: &Truth) -> Result<Section, Failure> {
    let examination = Examination::new(model, &truth.mapping, truth.contexts.clone())?;
    let score = Some((examination.score(&fitted.agent)?, truth.scored_on(false)));
    let report = Report::new("", "", fitted, score, None, BTreeMap::new());
    let rows = report.held_out().into_iter().chain(report.against_the_truth()).collect();
    let content = facts("Compared with the expert's own mapping", rows);
    Ok(Section::new("truth", "Against the truth", content))
}
