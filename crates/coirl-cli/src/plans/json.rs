//! Plans as JSON.

use super::{Columns, PlanWriter};
use crate::failure::Failure;
use coirl::model::ActionId;
use coirl::plan::{Certificate, PlannedReward, Policy, Way};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct Record<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a [f64]>,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    feature_expectations: Option<&'a [f64]>,
    policy: Actions<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a [f64]>,
    certificate: &'a Certificate,
    way: Way,
}

/// Actions per state; a list of such lists for a finite horizon.
#[derive(Serialize)]
#[serde(untagged)]
enum Actions<'a> {
    Stationary(&'a [ActionId]),
    Staged(&'a [Vec<ActionId>]),
    Stochastic(&'a [f64]),
    StagedStochastic(&'a [Vec<f64>]),
}

impl<'a> Record<'a> {
    fn new(columns: &'a Columns<'_>, plan: &'a PlannedReward) -> Self {
        Self {
            index: (!columns.single).then_some(plan.index),
            context: columns.context(plan.index),
            value: plan.value,
            feature_expectations: plan.feature_expectations.as_deref(),
            policy: match &plan.policy {
                Policy::Stationary(actions) => Actions::Stationary(actions),
                Policy::Staged(stages) => Actions::Staged(stages),
                Policy::Stochastic(probabilities) => Actions::Stochastic(probabilities),
                Policy::StagedStochastic(stages) => Actions::StagedStochastic(stages),
            },
            values: plan.values.as_deref(),
            certificate: &plan.certificate,
            way: plan.way,
        }
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        Ok(serde_json::to_writer(out, self).map_err(io::Error::from)?)
    }
}

/// The plan of one reward: one object.
pub(super) struct OneObject<'a> {
    columns: &'a Columns<'a>,
    out: &'a mut dyn Write,
}

impl<'a> OneObject<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, out: &'a mut dyn Write) -> Self {
        Self { columns, out }
    }
}

impl PlanWriter for OneObject<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        Record::new(self.columns, plan).write(self.out)
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(writeln!(self.out)?)
    }
}

/// The plans of many rewards: one object with a list, a plan per line.
pub(super) struct Objects<'a> {
    columns: &'a Columns<'a>,
    out: &'a mut dyn Write,
    first: bool,
}

impl<'a> Objects<'a> {
    pub(super) fn new(columns: &'a Columns<'a>, out: &'a mut dyn Write) -> Result<Self, Failure> {
        write!(out, "{{\"plans\":[")?;
        Ok(Self { columns, out, first: true })
    }
}

impl PlanWriter for Objects<'_> {
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure> {
        writeln!(self.out, "{}", if self.first { "" } else { "," })?;
        self.first = false;
        Record::new(self.columns, plan).write(self.out)
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(writeln!(self.out, "\n]}}")?)
    }
}
