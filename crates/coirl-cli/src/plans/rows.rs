//! Plans as comma-separated rows.

use super::{Columns, PlanWriter};
use crate::failure::Failure;
use crate::numbers::full;
use coirl::model::ActionId;
use coirl::plan::{PlannedReward, Policy, Status};
use std::io::{self, Write};

/// The word of a status, the same in every format.
pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Exact => "exact",
        Status::Converged => "converged",
        Status::SweepLimit => "sweep_limit",
    }
}

/// One row per plan below a header; policies are actions separated by spaces, the stages of a finite horizon by bars.
pub(super) struct CsvRows<'a> {
    columns: &'a Columns<'a>,
    out: csv::Writer<&'a mut dyn Write>,
}

impl<'a> CsvRows<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, out: &'a mut dyn Write) -> Result<Self, Failure> {
        let mut header = vec!["index".to_owned()];
        header.extend(columns.context_columns());
        header.push("value".into());
        if columns.options.feature_expectations {
            header.extend(columns.expectation_columns());
        }
        header.extend(["status", "residual", "suboptimality_bound", "value_error_bound", "sweeps"].map(String::from));
        header.extend(columns.policy.then(|| "policy".into()));
        header.extend(columns.options.values.then(|| "values".into()));
        let mut out = csv::Writer::from_writer(out);
        out.write_record(&header).map_err(csv_error)?;
        Ok(Self { columns, out })
    }
}

impl PlanWriter for CsvRows<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        let certificate = &plan.certificate;
        let mut row = vec![plan.index.to_string()];
        row.extend(self.columns.context(plan.index).unwrap_or_default().iter().copied().map(full));
        row.push(full(plan.value));
        row.extend(plan.feature_expectations.iter().flatten().copied().map(full));
        row.push(status_word(certificate.status).into());
        row.extend([certificate.residual, certificate.suboptimality_bound, certificate.value_error_bound].map(full));
        row.push(certificate.sweeps.to_string());
        row.extend(self.columns.policy.then(|| policy_text(&plan.policy)));
        row.extend(plan.values.iter().map(|values| joined(values.iter().copied().map(full))));
        self.out.write_record(&row).map_err(csv_error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

fn policy_text(policy: &Policy) -> String {
    let actions = |actions: &[ActionId]| joined(actions.iter().map(|action| action.0.to_string()));
    let shares = |probabilities: &[f64]| joined(probabilities.iter().copied().map(full));
    match policy {
        Policy::Stationary(stationary) => actions(stationary),
        Policy::Staged(stages) => stages.iter().map(|stage| actions(stage)).collect::<Vec<_>>().join(" | "),
        Policy::Stochastic(probabilities) => shares(probabilities),
        Policy::StagedStochastic(stages) => stages.iter().map(|stage| shares(stage)).collect::<Vec<_>>().join(" | "),
    }
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

fn csv_error(error: csv::Error) -> Failure {
    Failure::from(io::Error::from(error))
}
