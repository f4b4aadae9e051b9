//! The loop that all methods share: step, record, stop, and go on from a checkpoint.

use super::adaptive;
use super::batch_ellipsoid;
use super::bundle;
use super::cutting_plane;
use super::ellipsoid;
use super::evolution;
use super::mirror_descent;
use super::neural;
use super::problem::Problem;
use super::record::{Checkpoint, Fitted, GameValue, Patience, Record, Recorder, RunCertificate, Snapshot, Status};
use super::replay;
use super::settings::{Method, Settings, Watched};
use crate::agent::Agent;
use crate::baselines::{
    CloningState, MaximumEntropyPerContextState, MaximumEntropyState, NeuralCloningState, TrivialState,
};
use crate::baselines::{frank_wolfe, max_margin, mwal, projection};
use crate::error::{Error, Result, check_finite, check_length};
use crate::mapping::LinearMapping;
use crate::optim::norm;
use crate::score::Examination;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of the checkpoint format.
pub(crate) const CHECKPOINT_VERSION: u32 = 1;

/// What a method keeps between two steps. One per algorithm; all randomness is derived from the seed and the step, so
/// that this is all a checkpoint needs.
pub(crate) trait Algorithm: Sized + Serialize + DeserializeOwned {
    /// Settings of the method.
    type Settings;

    /// Before the first step, from W₁ where one is given.
    fn start(settings: &Self::Settings, problem: &Problem<'_>, initial: Option<&[f64]>, seed: u64) -> Result<Self>;

    /// One step, the first has number 1.
    fn step(&mut self, settings: &Self::Settings, problem: &Problem<'_>, run: Run) -> Result<Step>;

    /// Whether a state that was read belongs to a problem of this size. Steps rely on it: they index by what the state holds.
    fn fits(&self, problem: &Problem<'_>) -> bool;

    /// The linear mapping whose loss is recorded; none where the method learns no such reward.
    fn mapping(&self) -> Option<Vec<f64>>;

    /// Whether what is learned has a loss.
    fn has_loss(&self) -> bool {
        self.mapping().is_some()
    }

    /// The loss on all demonstrations of what would be returned now, whatever its scale; none where it has none.
    fn unit_loss(&self, problem: &Problem<'_>) -> Result<Option<f64>> {
        self.mapping().map_or(Ok(None), |mapping| problem.unit_loss(&mapping))
    }

    /// Mean log-probability and mean probability of the demonstrated actions, for methods whose steps look at a few of them only.
    fn explained_actions(&self, _problem: &Problem<'_>) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }

    /// Whether there is something to stop by on validation demonstrations.
    fn can_be_validated(&self) -> bool {
        self.has_loss()
    }

    /// What a run is stopped by on validation demonstrations: the loss unless the method says otherwise.
    fn validation_loss(&self, _problem: &Problem<'_>, validation: &Problem<'_>) -> Result<Option<f64>> {
        self.unit_loss(validation)
    }

    /// How to act, were the run to end now: by planning for the mapping unless the method says otherwise.
    fn agent(&self, problem: &Problem<'_>) -> Result<Agent> {
        let values = self.mapping().unwrap_or_default();
        Ok(Agent::Planned(LinearMapping::new(problem.dimension(), problem.n_features(), values)?))
    }

    /// The last iterate, where the mapping is an average.
    fn last_iterate(&self) -> Option<Vec<f64>> {
        None
    }

    /// How many steps the method takes where nothing is said.
    fn default_steps(settings: &Self::Settings, problem: &Problem<'_>) -> u64;

    /// Between what and what the value of the game lies, for methods that play one.
    fn game(&self, _settings: &Self::Settings) -> Option<GameValue> {
        None
    }

    /// The theorem's bound and what it says about this run.
    fn bound(&self, settings: &Self::Settings, problem: &Problem<'_>, steps: u64) -> Result<(Option<f64>, String)>;
}

/// Where in a run a step is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Number of the step, from 1.
    pub(crate) step: u64,
    /// Number of the last step.
    pub(crate) last: u64,
    /// Seed of the run.
    pub(crate) seed: u64,
}

impl Run {
    /// The context of this step for methods that go through them one by one: in order, again from the start after the last.
    pub(crate) fn context(self, problem: &Problem<'_>) -> usize {
        ((self.step - 1) % problem.len() as u64) as usize
    }
}

/// What a step reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) batch_loss: Option<f64>,
    pub(crate) step_size: Option<f64>,
    pub(crate) demonstrations: u64,
    pub(crate) gap: Option<f64>,
    pub(crate) distance: Option<f64>,
    pub(crate) log_volume: Option<f64>,
    pub(crate) regret: Option<f64>,
    pub(crate) violation: Option<f64>,
    pub(crate) log_likelihood: Option<f64>,
    pub(crate) training_accuracy: Option<f64>,
    pub(crate) finished: bool,
}

/// What a run is watched by: a truth to be scored against, and demonstrations to stop by.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Scores every recorded step.
    pub examination: Option<&'a Examination<'a>>,
    /// Validation demonstrations, as a problem of their own.
    pub validation: Option<&'a Problem<'a>>,
}

/// Learns a mapping.
pub fn fit(
    problem: &Problem<'_>,
    settings: &Settings,
    watch: Watch<'_>,
    recorder: &mut dyn Recorder,
) -> Result<Fitted> {
    dispatch(problem, settings, watch, recorder, None)
}

/// Goes on from a checkpoint, to the same result as an uninterrupted run. The checkpoint must belong to this model and
/// these demonstrations.
pub fn resume(
    problem: &Problem<'_>,
    checkpoint: Checkpoint,
    watch: Watch<'_>,
    recorder: &mut dyn Recorder,
) -> Result<Fitted> {
    if checkpoint.version != CHECKPOINT_VERSION {
        let reason = format!("version {}; this program reads version {CHECKPOINT_VERSION}", checkpoint.version);
        return Err(Error::Checkpoint { reason });
    }
    let digest = problem.digest();
    if checkpoint.digest != digest {
        let reason = format!("it belongs to other data (digest {:.12}…, not {digest:.12}…)", checkpoint.digest);
        return Err(Error::Checkpoint { reason });
    }
    let settings = checkpoint.settings.clone();
    dispatch(problem, &settings, watch, recorder, Some(checkpoint))
}

fn dispatch(
    problem: &Problem<'_>,
    settings: &Settings,
    watch: Watch<'_>,
    recorder: &mut dyn Recorder,
    from: Option<Checkpoint>,
) -> Result<Fitted> {
    macro_rules! run {
        ($state:ty, $own:expr) => {
            Driver { problem, settings, watch, own: $own, digest: problem.digest() }.run::<$state>(recorder, from)
        };
    }
    match &settings.method {
        Method::Adaptive(own) => run!(adaptive::State, own),
        Method::Bundle(own) => run!(bundle::State, own),
        Method::MirrorDescent(own) => run!(mirror_descent::State, own),
        Method::Neural(own) => run!(neural::State, own),
        Method::EvolutionStrategies(own) => run!(evolution::State, own),
        Method::Ellipsoid(own) => run!(ellipsoid::State, own),
        Method::BatchEllipsoid(own) => run!(batch_ellipsoid::State, own),
        Method::CuttingPlane(own) => run!(cutting_plane::State, own),
        Method::ReplayedDescent(own) => run!(replay::Descent, own),
        Method::ReplayedEvolution(own) => run!(replay::Evolution, own),
        Method::FrankWolfe(own) => run!(frank_wolfe::State, own),
        Method::MaxMargin(own) => run!(max_margin::State, own),
        Method::Mwal(own) => run!(mwal::State, own),
        Method::Projection(own) => run!(projection::State, own),
        Method::MaximumEntropy(own) => run!(MaximumEntropyState, own),
        Method::MaximumEntropyPerContext(own) => run!(MaximumEntropyPerContextState, own),
        Method::Cloning(own) => run!(CloningState, own),
        Method::NeuralCloning(own) => run!(NeuralCloningState, own),
        Method::Majority(own) => run!(TrivialState<_>, own),
        Method::NearestContext(own) => run!(TrivialState<_>, own),
        Method::Uniform(own) => run!(TrivialState<_>, own),
    }
}

struct Driver<'r, 'a, S> {
    problem: &'r Problem<'a>,
    settings: &'r Settings,
    watch: Watch<'r>,
    own: &'r S,
    digest: String,
}

impl<S> Driver<'_, '_, S> {
    fn run<A: Algorithm<Settings = S>>(&self, recorder: &mut dyn Recorder, from: Option<Checkpoint>) -> Result<Fitted> {
        let Self { problem, settings, own, .. } = *self;
        if let Some(initial) = &settings.initial {
            check_length("initial mapping", problem.n_parameters(), initial.len())?;
            check_finite("initial mapping", initial)?;
        }
        self.check_stop_rules()?;
        let last = settings.stop.max_steps.unwrap_or_else(|| A::default_steps(own, problem));
        let calls_before = problem.planner_calls();
        let (mut state, mut step, mut history, mut patience, earlier_calls, ended) = match from {
            None => {
                let state = A::start(own, problem, settings.initial.as_deref(), settings.seed)?;
                (state, 0, Vec::new(), Patience::default(), 0, None)
            }
            Some(checkpoint) => {
                let state: A = restored(checkpoint.state, problem)?;
                if let Some(mapping) = state.mapping() {
                    check_length("mapping of the checkpoint", problem.n_parameters(), mapping.len())?;
                }
                let Checkpoint { step, history, patience, planner_calls, ended, .. } = checkpoint;
                (state, step, history, patience, planner_calls, ended)
            }
        };
        self.check_has_loss(&state)?;
        // Plans made for the record are not the learner's.
        let mut recording_calls = 0;
        let calls = |recording: u64| earlier_calls + problem.planner_calls() - calls_before - recording;
        if step == 0 && history.is_empty() {
            let record = Record::default();
            history.push(self.recorded(&state, record, &mut recording_calls)?);
        }
        let mut demonstrations = history.last().map_or(0, |record| record.demonstrations);
        recorder.begin(Some(last.saturating_sub(step)));
        let mut status = ended.or((step >= last).then_some(Status::StepLimit));
        while status.is_none() {
            step += 1;
            let done = state.step(own, problem, Run { step, last, seed: settings.seed })?;
            demonstrations = demonstrations.max(done.demonstrations);
            let mut record = Record {
                step,
                batch_loss: done.batch_loss,
                demonstrations: done.demonstrations,
                planner_calls: calls(recording_calls),
                step_size: done.step_size,
                gap: done.gap,
                distance: done.distance,
                log_volume: done.log_volume,
                regret: done.regret,
                violation: done.violation,
                log_likelihood: done.log_likelihood,
                training_accuracy: done.training_accuracy,
                ..Record::default()
            };
            check_record(&record)?;
            if done.finished {
                status = Some(Status::Finished);
            } else if settings.stop.gap.zip(done.gap).is_some_and(|(wanted, gap)| gap <= wanted) {
                status = Some(Status::GapReached);
            } else if step >= last {
                status = Some(Status::StepLimit);
            }
            let due = settings.record_every > 0 && step % settings.record_every == 0;
            if due || status.is_some() {
                record = self.recorded(&state, record, &mut recording_calls)?;
                if status.is_none() {
                    status = self.stopped(&state, &record, &mut patience)?;
                }
                history.push(record.clone());
            }
            let snapshot = Snapshot {
                agent: &|| state.agent(problem),
                checkpoint: &|| {
                    Ok(Checkpoint {
                        version: CHECKPOINT_VERSION,
                        settings: settings.clone(),
                        digest: self.digest.clone(),
                        step,
                        planner_calls: calls(recording_calls),
                        history: history.clone(),
                        state: kept(&state)?,
                        patience: patience.clone(),
                        // The number of steps is the caller's to raise when the run goes on.
                        ended: status.filter(|status| *status != Status::StepLimit),
                    })
                },
            };
            if recorder.step(&record, &snapshot)?.is_break() && status.is_none() {
                status = Some(Status::Interrupted);
            }
        }
        let status = status.unwrap_or(Status::Finished);
        let planner_calls = calls(recording_calls);
        if let (Status::ValidationStalled, Some(best)) = (status, patience.state.take()) {
            state = restored(best, problem)?;
        }
        Ok(Fitted {
            certificate: self.certificate(&state, step, history.last())?,
            agent: state.agent(problem)?,
            status,
            history,
            settings: settings.clone(),
            names: problem.model().names().clone(),
            digest: self.digest.clone(),
            demonstrations,
            planner_calls,
            steps: step,
        })
    }

    /// Refuses rules that could never end this run, rather than let it go on as if they were not there.
    fn check_stop_rules(&self) -> Result<()> {
        let Settings { stop, record_every, record_loss, .. } = self.settings;
        let refuse = |name, value: String, reason| Err(Error::InvalidSetting { name, value, reason });
        for (name, wanted) in [("stop.loss", stop.loss), ("stop.gap", stop.gap)] {
            if let Some(value) = wanted.filter(|value| !value.is_finite()) {
                return refuse(name, value.to_string(), "expected a finite number");
            }
        }
        if let Some(loss) = stop.loss {
            if *record_every == 0 || !record_loss {
                return refuse(
                    "stop.loss",
                    loss.to_string(),
                    "the loss is not recorded; set record_every and record_loss",
                );
            }
            if !self.problem.has_demonstrations() {
                return refuse("stop.loss", loss.to_string(), "there are no demonstrations to have a loss on");
            }
        }
        if let Some(patience) = stop.patience {
            if *record_every == 0 {
                return refuse("stop.patience", patience.to_string(), "it counts records; set record_every");
            }
            if self.watch.validation.is_none() {
                return refuse(
                    "stop.patience",
                    patience.to_string(),
                    "there are no validation demonstrations to watch",
                );
            }
            if stop.watched == Watched::Accuracy {
                self.watch.validation.map_or(Ok(()), Problem::check_actions)?;
            }
        }
        Ok(())
    }

    /// Refuses to stop by a loss that the method does not have.
    fn check_has_loss<A: Algorithm>(&self, state: &A) -> Result<()> {
        let stop = &self.settings.stop;
        let by_loss = stop.loss.filter(|_| !state.has_loss()).map(|loss| ("stop.loss", loss.to_string()));
        let by_patience = stop.patience.filter(|_| stop.watched == Watched::Loss && !state.can_be_validated());
        match by_loss.or(by_patience.map(|patience| ("stop.patience", patience.to_string()))) {
            Some((name, value)) => Err(Error::InvalidSetting {
                name,
                value,
                reason: "the method learns no mapping, which alone has a loss",
            }),
            None => Ok(()),
        }
    }

    /// The record with what costs plans: losses and scores of the mapping as it stands.
    fn recorded<A: Algorithm>(&self, state: &A, mut record: Record, calls: &mut u64) -> Result<Record> {
        let mapping = state.mapping();
        if let Some(mapping) = &mapping {
            check_finite("mapping", mapping)?;
        }
        let before = self.problem.planner_calls();
        if self.settings.record_loss && self.problem.has_demonstrations() {
            record.loss = state.unit_loss(self.problem)?;
            if let Some((log_likelihood, accuracy)) = state.explained_actions(self.problem)? {
                (record.log_likelihood, record.training_accuracy) = (Some(log_likelihood), Some(accuracy));
            }
        }
        match (self.watch.validation, self.settings.stop.watched) {
            (Some(validation), Watched::Loss) => {
                record.validation_loss = state.validation_loss(self.problem, validation)?;
            }
            (Some(validation), Watched::Accuracy) => {
                record.validation_accuracy = Some(validation.accuracy(&state.agent(self.problem)?)?);
            }
            (None, _) => {}
        }
        if let Some(examination) = self.watch.examination {
            record.score = Some(examination.score(&state.agent(self.problem)?)?);
        }
        *calls += self.problem.planner_calls() - before;
        check_record(&record)?;
        Ok(record)
    }

    fn stopped<A: Algorithm>(&self, state: &A, record: &Record, patience: &mut Patience) -> Result<Option<Status>> {
        let stop = &self.settings.stop;
        if stop.loss.zip(record.loss).is_some_and(|(wanted, loss)| loss <= wanted) {
            return Ok(Some(Status::LossReached));
        }
        let watched = record.validation_loss.or(record.validation_accuracy.map(|accuracy| -accuracy));
        let Some((most, loss)) = stop.patience.zip(watched) else {
            return Ok(None);
        };
        if patience.best.is_none_or(|best| loss < best) {
            *patience = Patience { best: Some(loss), state: Some(kept(state)?), waited: 0 };
            return Ok(None);
        }
        patience.waited += 1;
        Ok((patience.waited >= most).then_some(Status::ValidationStalled))
    }

    fn certificate<A: Algorithm<Settings = S>>(
        &self,
        state: &A,
        steps: u64,
        last: Option<&Record>,
    ) -> Result<RunCertificate> {
        let problem = self.problem;
        let known = self.settings.record_loss && problem.has_demonstrations();
        let loss_of = |mapping: &Option<Vec<f64>>| match mapping {
            Some(mapping) if known => problem.unit_loss(mapping),
            _ => Ok(None),
        };
        let mapping = state.mapping();
        let loss = if known { state.unit_loss(problem)? } else { None };
        let (bound, bound_says) = state.bound(self.own, problem, steps)?;
        let last_iterate_loss = loss_of(&state.last_iterate())?;
        let unnormalised_loss = loss.zip(mapping).map(|(loss, mapping)| loss * norm(&mapping));
        let game_value = state.game(self.own);
        check_told(
            steps,
            [
                ("loss", loss),
                ("loss of the last iterate", last_iterate_loss),
                ("loss as it stands", unnormalised_loss),
                ("value of the game", game_value.as_ref().map(|game| game.lower)),
                ("value of the game", game_value.as_ref().map(|game| game.upper)),
            ],
        )?;
        Ok(RunCertificate {
            loss,
            last_iterate_loss,
            unnormalised_loss,
            // What overflows bounds nothing.
            bound: bound.filter(|bound| bound.is_finite()),
            bound_says,
            gap: last.and_then(|record| record.gap),
            distance: last.and_then(|record| record.distance),
            game_value,
            bias_bound: problem.bias_bound(),
        })
    }
}

/// Refuses to go on with what is no number.
fn check_record(record: &Record) -> Result<()> {
    let told = [
        ("loss", record.loss),
        ("loss of the batch", record.batch_loss),
        ("length of the step", record.step_size),
        ("gap", record.gap),
        ("distance", record.distance),
        ("log-volume", record.log_volume),
        ("regret", record.regret),
        ("violation", record.violation),
        ("log-likelihood", record.log_likelihood),
        ("accuracy", record.training_accuracy),
        ("validation loss", record.validation_loss),
        ("validation accuracy", record.validation_accuracy),
    ];
    check_told(record.step, told)
}

fn check_told<const N: usize>(step: u64, told: [(&'static str, Option<f64>); N]) -> Result<()> {
    match told.into_iter().find_map(|(what, value)| value.filter(|x| !x.is_finite()).map(|value| (what, value))) {
        Some((what, value)) => Err(Error::Diverged { step, what, value }),
        None => Ok(()),
    }
}

/// A state as a checkpoint keeps it.
fn kept<A: Algorithm>(state: &A) -> Result<serde_json::Value> {
    serde_json::to_value(state).map_err(|error| Error::Checkpoint { reason: error.to_string() })
}

fn restored<A: Algorithm>(state: serde_json::Value, problem: &Problem<'_>) -> Result<A> {
    let damaged = |reason: String| Error::Checkpoint { reason: format!("its state is damaged: {reason}") };
    let state: A = serde_json::from_value(state).map_err(|error| damaged(error.to_string()))?;
    if state.fits(problem) { Ok(state) } else { Err(damaged("its lists are not as long as the problem needs".into())) }
}
