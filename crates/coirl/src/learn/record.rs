//! What a run tells while it goes on, and what it leaves behind.

use super::choice::{Chooser, Explained};
use super::guarantee::{GameValue, Guarantee};
use super::settings::Settings;
use crate::agent::{Agent, ContextualPolicy};
use crate::error::{Error, Result};
use crate::json::{unbounded, unbounded_where_present};
use crate::mapping::LinearMapping;
use crate::model::Names;
use crate::score::Score;
use std::ops::ControlFlow;

/// One step. Fields that a method does not have are `None`.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// Steps taken, this one included; zero is the start.
    pub step: u64,
    /// Loss(W)/‖W‖₂ of the mapping that would be returned now, on all demonstrations; where steps are recorded.
    pub loss: Option<f64>,
    /// The objective that this step saw on its own batch, at its own iterate: the loss, or what the method minimises in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_loss: Option<f64>,
    /// `loss` on the validation demonstrations, or what the method has in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// Share of the actions of the validation demonstrations that the agent would take, where that is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
    /// Demonstrations used so far.
    pub demonstrations: u64,
    /// Plans made by the learner so far.
    pub planner_calls: u64,
    /// Length of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_size: Option<f64>,
    /// How far the returned mapping's loss, or the agent's value in its game, can be from the best possible.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "unbounded_where_present")]
    pub gap: Option<f64>,
    /// ‖μ_E − μ̄‖₂: how far the agent's feature expectations, averaged over contexts as c ⊙ μ, are from the expert's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Logarithm of the volume of the ellipsoid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_volume: Option<f64>,
    /// Sum of `batch_loss`; for the loss, the regret against a mapping that explains every demonstration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
    /// The largest violation of an inequality that a demonstration imposes on the mapping, per unit length of both; zero
    /// where the mapping satisfies all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<f64>,
    /// Mean log-probability of the demonstrated actions, for methods with stochastic policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_likelihood: Option<f64>,
    /// Mean probability of the demonstrated actions, for methods that look at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_accuracy: Option<f64>,
    /// On the test contexts, where the truth is known: see [`Score`].
    #[serde(flatten)]
    pub score: Option<Score>,
}

impl Record {
    /// Refuses to go on with what is no number.
    pub(super) fn check(&self) -> Result<()> {
        let told = [
            ("loss", self.loss),
            ("loss of the batch", self.batch_loss),
            ("length of the step", self.step_size),
            ("gap", self.gap),
            ("distance", self.distance),
            ("log-volume", self.log_volume),
            ("regret", self.regret),
            ("violation", self.violation),
            ("log-likelihood", self.log_likelihood),
            ("accuracy", self.training_accuracy),
            ("validation loss", self.validation_loss),
            ("validation accuracy", self.validation_accuracy),
        ];
        check_numbers(self.step, &told)
    }
}

/// Refuses what is no number, by the name that it has for people.
pub(super) fn check_numbers(step: u64, told: &[(&'static str, Option<f64>)]) -> Result<()> {
    match told.iter().find_map(|&(what, value)| value.filter(|x| !x.is_finite()).map(|value| (what, value))) {
        Some((what, value)) => Err(Error::Diverged { step, what, value }),
        None => Ok(()),
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The method has nothing left to do.
    Finished,
    /// The gradient has vanished: the likelihood is as large as it gets.
    Converged,
    /// Some reward explains every decision but for lapses, and the longer the better: only the penalty keeps it finite. Its direction is
    /// what was learned, not its length.
    Separable,
    /// No reward makes the demonstrations likelier than another: nothing was learned.
    NotIdentified,
    /// The number of steps was reached.
    StepLimit,
    /// The loss fell to what was asked for.
    LossReached,
    /// The gap fell to what was asked for.
    GapReached,
    /// The validation loss stopped falling, or the accuracy rising; the agent is the best seen.
    ValidationStalled,
    /// The recorder asked to stop; the run can be resumed.
    Interrupted,
}

/// What is known about the result of a run.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[must_use]
pub struct RunCertificate {
    /// Loss(W)/‖W‖₂ of the returned mapping on all demonstrations.
    pub loss: Option<f64>,
    /// Loss(W)/‖W‖₂ of the last iterate on all demonstrations, where the mapping is an average.
    pub last_iterate_loss: Option<f64>,
    /// Loss(W) of the returned mapping as it stands, to be compared with `bound`.
    pub unnormalised_loss: Option<f64>,
    /// The theorem's bound on that, or on the number of mistakes.
    pub bound: Option<f64>,
    /// What the bound is about and whether its assumptions hold in this run; why there is none, where there is none.
    #[serde(default = "Guarantee::not_recorded")]
    pub guarantee: Guarantee,
    /// How far the loss, or the value of the game, can be from the best possible, where the method knows.
    pub gap: Option<f64>,
    /// ‖μ_E − μ̄‖₂, for methods that match feature expectations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// The value of the game that the method plays, where it plays one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game_value: Option<GameValue>,
    /// A bound on the bias of the demonstrated feature expectations.
    #[serde(deserialize_with = "unbounded")]
    pub bias_bound: f64,
    /// How well demonstrated choices are explained, for methods that model them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
}

/// The result of a run: all later steps need only this.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Fitted<M> {
    /// How to act.
    pub agent: Agent,
    /// Why the run ended.
    pub status: Status,
    /// What is known about it.
    pub certificate: RunCertificate,
    /// One record per recorded step.
    pub history: Vec<Record>,
    /// Settings as they were resolved.
    pub settings: Settings<M>,
    /// What the parts of the model are called.
    pub names: Names,
    /// SHA-256 of model and demonstrations.
    pub digest: String,
    /// Demonstrations used.
    pub demonstrations: u64,
    /// Plans made by the learner.
    pub planner_calls: u64,
    /// Steps taken.
    pub steps: u64,
}

impl<M> Fitted<M> {
    /// f, for methods that learn a reward.
    pub fn mapping(&self) -> Result<&LinearMapping> {
        self.agent.mapping()
    }

    /// The experts as the choice model sees them, softly choosing and with lapses; nothing for other methods, or where no single actions were
    /// seen. The agent plans for the same reward and takes what is best.
    pub fn chooser(&self) -> Option<Chooser<'_>> {
        let lapses = self.certificate.explained.as_ref()?.lapses?;
        Some(Chooser::new(self.agent.reward()?, lapses))
    }
}

/// Everything needed to go on from where a run stopped.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "M: Default + serde::Deserialize<'de>"))]
pub struct Checkpoint<M> {
    /// Version of this format.
    pub version: u32,
    /// Settings of the run.
    pub settings: Settings<M>,
    /// SHA-256 of model and demonstrations.
    pub digest: String,
    /// Steps taken.
    pub step: u64,
    /// Plans made.
    pub planner_calls: u64,
    /// Records so far.
    pub history: Vec<Record>,
    /// What the method keeps.
    pub state: serde_json::Value,
    /// Progress of the stop rules.
    pub patience: Patience,
    /// Why the run ended with this step, where it did: a run that was killed before its result was written must not go further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Status>,
}

/// The best validation loss so far.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Best validation loss.
    pub best: Option<f64>,
    /// What the method kept when it had it.
    pub state: Option<serde_json::Value>,
    /// Records since.
    pub waited: u64,
}

/// The run as it stands, for recorders that want more than the record.
pub struct Snapshot<'s> {
    pub(super) agent: &'s dyn Fn() -> Result<Agent>,
    pub(super) checkpoint: &'s dyn Fn() -> Result<serde_json::Value>,
}

impl Snapshot<'_> {
    /// How to act, were the run to end now.
    pub fn agent(&self) -> Result<Agent> {
        (self.agent)()
    }

    /// What is needed to go on from here.
    pub fn checkpoint<M: Default + serde::de::DeserializeOwned>(&self) -> Result<Checkpoint<M>> {
        let damaged = |error: serde_json::Error| Error::Checkpoint { reason: error.to_string() };
        serde_json::from_value((self.checkpoint)()?).map_err(damaged)
    }
}

/// Watches a run: progress bars, histories and checkpoints are recorders. A recorder can ask to stop.
pub trait Recorder {
    /// Before the first step; `steps` is the number of steps to come, where it is known.
    fn begin(&mut self, _steps: Option<u64>) {}

    /// After every step.
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> Result<ControlFlow<()>>;
}

/// Watches nothing.
impl Recorder for () {
    fn step(&mut self, _record: &Record, _snapshot: &Snapshot<'_>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Any function of a record.
impl<F: FnMut(&Record) -> ControlFlow<()>> Recorder for F {
    fn step(&mut self, record: &Record, _snapshot: &Snapshot<'_>) -> Result<ControlFlow<()>> {
        Ok(self(record))
    }
}
