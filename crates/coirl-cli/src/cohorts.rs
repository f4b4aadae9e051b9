//! Cohorts, from what was typed to what is written.

mod applying;
mod fitted_on;
mod folder;
mod input;
mod picture;
mod report;
mod scoring;
mod truth_file;

pub(crate) use applying::{Applying, PersonAnswer};
pub(crate) use fitted_on::CohortRun;
pub(crate) use folder::{CohortFile, CohortFolder, FLOW, write_flow, write_scored};
pub(crate) use input::InputArgs;
pub(crate) use picture::selection_picture;
pub(crate) use report::{
    TOO_FEW, action_in_words, by_severity, described, flow, in_truth, matching, reached, reservations, subgroups,
    unseen_by_estimates, verdict, warnings, write_build, write_comparison, write_findings, write_scores,
    write_selection,
};
pub(crate) use scoring::{ExamArgs, Scores};
pub(crate) use truth_file::TruthFile;

/// What every page that may show patients says.
pub(crate) const NOT_FOR_CLINICAL_USE: &str = "Research software, not for clinical use.";
