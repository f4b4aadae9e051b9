//! A learner: settings, what it keeps between two steps, one step, and how to act on what it has learned.
//!
//! The loop of [`run`](super::run) brings everything else to every learner: checkpoints, exact resume, records, stop rules, early
//! stopping and scores. `descent.rs` is the one to read first; `examples/own_learner.rs` is one from outside.

use super::choice::Explained;
use super::guarantee::{GameValue, Guarantee};
use super::problem::Problem;
use super::record::{Record, Status};
use crate::agent::Agent;
use crate::error::{Error, Result};
use crate::optim::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A method of learning, with its settings.
pub trait Learner: Sync {
    /// What is kept between two steps. All randomness is derived from the seed and the step, so that this is all a checkpoint needs; it
    /// holds finite numbers only.
    type State: Serialize + DeserializeOwned;

    /// Before the first step.
    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<Self::State>;

    /// One step, the first has number 1.
    fn step(&self, state: &mut Self::State, problem: &Problem<'_>, run: Run) -> Result<Step>;

    /// How to act, were the run to end now; by default by planning for the linear mapping.
    fn agent(&self, state: &Self::State, problem: &Problem<'_>) -> Result<Agent> {
        let mapping = self.mapping(state).ok_or(Error::NoMapping { agent: "the learner's" })?;
        Ok(Agent::Planned(problem.linear(&mapping)?))
    }

    /// Number of steps by default.
    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64>;

    /// Steps in one pass over what the method learns from.
    fn steps_per_pass(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    /// Demonstrations that a step looks at, for methods that look at a batch of them.
    fn demonstrations_per_step(&self, _problem: &Problem<'_>) -> u64 {
        1
    }

    /// Whether a run can go on with demonstrations that arrive later: what it keeps does not depend on which ones it saw.
    fn is_stream(&self) -> bool {
        false
    }

    /// Steps over which about a hundred records are spread by default.
    fn recorded_span(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    /// The settings with what was left open decided by the data.
    fn resolved_for(&self, _problem: &Problem<'_>) -> Result<Self>
    where
        Self: Clone,
    {
        Ok(self.clone())
    }

    /// Whether a state that was read belongs to a problem of this size. Steps rely on it: they index by what the state holds.
    fn fits(&self, _state: &Self::State, _problem: &Problem<'_>) -> bool {
        true
    }

    /// The linear mapping whose loss is recorded, flattened; nothing where the method learns no such reward.
    fn mapping(&self, _state: &Self::State) -> Option<Vec<f64>> {
        None
    }

    /// The last iterate, where the mapping is an average.
    fn last_iterate(&self, _state: &Self::State) -> Option<Vec<f64>> {
        None
    }

    /// Whether what is learned has a loss: whether [`Learner::mapping`] or [`Learner::loss`] gives something.
    fn has_loss(&self) -> bool {
        false
    }

    /// The loss on all demonstrations of what would be returned now, whatever its scale; nothing where it has none.
    fn loss(&self, state: &Self::State, problem: &Problem<'_>) -> Result<Option<f64>> {
        self.mapping(state).map_or(Ok(None), |mapping| problem.unit_loss(&mapping))
    }

    /// Whether there is something to stop by on validation demonstrations.
    fn can_be_validated(&self) -> bool {
        self.has_loss()
    }

    /// What early stopping looks at on validation demonstrations; by default the loss.
    fn validation_loss(
        &self,
        state: &Self::State,
        _problem: &Problem<'_>,
        validation: &Problem<'_>,
    ) -> Result<Option<f64>> {
        self.loss(state, validation)
    }

    /// Mean log-probability and mean probability of the demonstrated actions, for methods whose steps look at a few of them only.
    fn explained_actions(&self, _state: &Self::State, _problem: &Problem<'_>) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }

    /// Between what and what the value of the game lies, for methods that play one.
    fn game(&self, _state: &Self::State) -> Option<GameValue> {
        None
    }

    /// Whether a run may end with this state by early stopping: not while the learner still chooses what it will fit.
    fn may_stop(&self, _state: &Self::State) -> bool {
        true
    }

    /// Why the run ended, where the learner itself ended it.
    fn end_status(&self, _state: &Self::State) -> Status {
        Status::Finished
    }

    /// How well demonstrated choices are explained, for methods that model them.
    fn explained(&self, _state: &Self::State, _problem: &Problem<'_>) -> Result<Option<Explained>> {
        Ok(None)
    }

    /// A theorem's bound for this run, and what it says; by default nothing is claimed.
    fn guarantee(&self, _state: &Self::State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        Ok((None, Guarantee::default()))
    }
}

/// What a run starts from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'s> {
    /// W₁, row-major; by default what the method starts from.
    pub initial: Option<&'s [f64]>,
    /// Seed of everything random.
    pub seed: u64,
}

/// Where in a run a step is.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Number of the step, from 1.
    pub step: u64,
    /// Number of the last step.
    pub last: u64,
    /// Seed of the run.
    pub seed: u64,
}

impl Run {
    /// The context of this step for methods that go through them one by one: in order, again from the start after the last.
    pub fn context(self, problem: &Problem<'_>) -> usize {
        ((self.step - 1) % problem.len() as u64) as usize
    }

    /// The time, for optimisers.
    pub fn time(self) -> Time {
        Time { step: self.step, last: self.last }
    }
}

/// What a step reports.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// What the learner knows of its step; the loop adds the number of the step, what was planned and what is recorded now and then.
    pub record: Record,
    /// Whether there is nothing left to do.
    pub finished: bool,
}

impl From<Record> for Step {
    fn from(record: Record) -> Self {
        Self { record, finished: false }
    }
}
