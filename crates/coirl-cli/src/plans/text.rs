//! Plans as text for people.

use super::columns::{action_name, first_action};
use super::rows::status_word;
use super::{Columns, PlanWriter};
use crate::failure::Failure;
use crate::numbers::{bound, count, short};
use crate::text;
use coirl::model::Cmdp;
use coirl::plan::{Certificate, PlannedReward, Policy, Status, Way};
use std::io::Write;

/// Rows of a table before the rest is only counted.
pub(crate) const MOST_ROWS: usize = 20;

/// The plan of one reward.
pub(super) struct OnePlan<'a> {
    columns: &'a Columns<'a>,
    out: &'a mut dyn Write,
}

impl<'a> OnePlan<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, out: &'a mut dyn Write) -> Self {
        Self { columns, out }
    }

    fn features(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        let Some(expectations) = &plan.feature_expectations else { return Ok(()) };
        let names = &self.columns.model.names().features;
        let row = |j: usize| {
            let (w, mu) = (self.columns.weights[j], expectations[j]);
            let name = names.get(j).cloned().unwrap_or_else(|| j.to_string());
            vec![name, short(w), short(mu), short(w * mu)]
        };
        let rows: Vec<_> = (0..expectations.len().min(MOST_ROWS)).map(row).collect();
        writeln!(self.out)?;
        text::table(self.out, &["feature", "weight", "expectation", "product"], &[1, 2, 3], rows)?;
        Ok(rest(self.out, expectations.len(), "features")?)
    }

    fn states(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        let n_states = self.columns.model.n_states();
        let row = |state: usize| {
            let action = first_action(&plan.policy, state).map(|action| self.columns.action_name(action));
            let value = plan.values.as_ref().map(|values| short(values[state]));
            [Some(state.to_string()), action, value].into_iter().flatten().collect()
        };
        let rows = (0..n_states.min(MOST_ROWS)).map(row).collect();
        let header = ["state", "action", "value"];
        writeln!(self.out)?;
        text::table(self.out, &header[..if plan.values.is_some() { 3 } else { 2 }], &[0, 2], rows)?;
        Ok(rest(self.out, n_states, "states")?)
    }
}

impl PlanWriter for OnePlan<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        let Certificate { status, residual, suboptimality_bound, value_error_bound, sweeps } = plan.certificate;
        let value = format!("{} (within {} of the best possible)", short(plan.value), bound(value_error_bound));
        text::pair(self.out, "value", &value)?;
        let words = match status {
            Status::Exact => "exact: greedy for its own exactly evaluated values",
            Status::Converged => "converged to the tolerance",
            Status::SweepLimit => {
                "stopped before it converged, at the limit of sweeps or where more of them gain nothing"
            }
        };
        text::pair(self.out, "status", words)?;
        let certificate = format!("no policy is better by more than {}", bound(suboptimality_bound));
        text::pair(self.out, "certificate", &certificate)?;
        text::pair(self.out, "sweeps", &format!("{}, to a residual of {}", count(sweeps), bound(residual)))?;
        text::pair(self.out, "way", &plan.way.to_string())?;
        if let Some(action) = self.columns.start_state().and_then(|state| first_action(&plan.policy, state)) {
            text::pair(self.out, "at the start", &self.columns.action_name(action))?;
        }
        let counts = action_counts(self.columns.model, &plan.policy);
        text::pair(self.out, "policy", &counts)?;
        self.features(plan)?;
        if self.columns.policy || plan.values.is_some() || self.columns.model.n_states() <= MOST_ROWS {
            self.states(plan)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// The plans of many rewards: the first few, and how many there are.
pub(super) struct ManyPlans<'a> {
    columns: &'a Columns<'a>,
    out: &'a mut dyn Write,
    rows: Vec<Vec<String>>,
    seen: usize,
    /// How many plans went each way, in the order in which they were met.
    ways: Vec<(Way, usize)>,
}

impl<'a> ManyPlans<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, out: &'a mut dyn Write) -> Self {
        Self { columns, out, rows: Vec::new(), seen: 0, ways: Vec::new() }
    }
}

impl PlanWriter for ManyPlans<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        self.seen += 1;
        match self.ways.iter_mut().find(|(way, _)| *way == plan.way) {
            Some((_, plans)) => *plans += 1,
            None => self.ways.push((plan.way, 1)),
        }
        if self.seen <= MOST_ROWS {
            let mut row = vec![
                plan.index.to_string(),
                short(plan.value),
                status_word(plan.certificate.status).into(),
                bound(plan.certificate.suboptimality_bound),
            ];
            if let Some(state) = self.columns.start_state() {
                row.extend(first_action(&plan.policy, state).map(|action| self.columns.action_name(action)));
            }
            self.rows.push(row);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let first = if self.columns.n_context() > 0 { "context" } else { "plan" };
        let mut header = vec![first, "value", "status", "bound"];
        header.extend(self.columns.start_state().map(|_| "first action"));
        text::table(self.out, &header, &[0, 1, 3], self.rows)?;
        rest(self.out, self.seen, "plans")?;
        writeln!(self.out)?;
        for (way, plans) in self.ways {
            text::pair(self.out, "way", &format!("{} of {}: {way}", count(plans), count(self.seen)))?;
        }
        Ok(())
    }
}

/// How often each action is chosen, over the states.
pub(crate) fn action_counts(model: &Cmdp, policy: &Policy) -> String {
    let stage = match policy {
        Policy::Stationary(actions) => actions,
        Policy::Staged(stages) => match stages.first() {
            Some(actions) => actions,
            None => return String::new(),
        },
        Policy::Stochastic(_) | Policy::StagedStochastic(_) => return "stochastic".into(),
    };
    let mut counts = vec![0; model.n_actions()];
    stage.iter().for_each(|action| counts[action.index()] += 1);
    let used = (0..counts.len()).filter(|&action| counts[action] > 0);
    let words: Vec<_> =
        used.map(|action| format!("{} in {}", action_name(model, action), count(counts[action]))).collect();
    let first = if matches!(policy, Policy::Staged(_)) { "first decision: " } else { "" };
    format!("{first}{} of {} states", words.join(", "), count(stage.len()))
}

/// Says that a table goes on, and where to see the rest.
pub(crate) fn rest(out: &mut dyn Write, n: usize, what: &str) -> std::io::Result<()> {
    match n.checked_sub(MOST_ROWS) {
        Some(more) if more > 0 => writeln!(out, "  … and {} more {what}; --json or --out FILE gives all", count(more)),
        _ => Ok(()),
    }
}
