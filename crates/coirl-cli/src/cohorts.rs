//! Cohorts, from what was typed to what is written.

mod applying;
mod fitted_on;
mod folder;
mod input;
mod limits;
mod picture;
mod report;
mod scoring;
mod truth_file;
mod units;
mod verdicts;

pub(crate) use applying::{Applying, PersonAnswer};
pub(crate) use fitted_on::CohortRun;
pub(crate) use folder::{CohortFile, CohortFolder, FLOW, write_coded, write_flow};
pub(crate) use input::InputArgs;
pub(crate) use limits::{by_part, too_many_parameters};
pub(crate) use picture::selection_picture;
pub(crate) use report::{
    TOO_FEW, by_severity, described, flow, in_truth, matching, reached, reservations, subgroups, unseen_by_estimates,
    warnings, write_build, write_comparison, write_findings, write_scores, write_selection,
};
pub(crate) use scoring::{ExamArgs, Scores};
pub(crate) use truth_file::TruthFile;
pub(crate) use units::{action_in_words, actions_in_words, in_unit, levels_in_words};
pub(crate) use verdicts::{about_rules, hazard, rare_actions, rules, verdict};

/// What every page that may show patients says.
pub(crate) const NOT_FOR_CLINICAL_USE: &str = "Research software, not for clinical use.";
