//! The loop that all learners share: step, record, stop, and go on from a checkpoint.

use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start};
use super::problem::Problem;
use super::record::{Checkpoint, Fitted, Patience, Record, Recorder, RunCertificate, Snapshot, Status, check_numbers};
use super::settings::{Settings, Watched};
use crate::error::{Error, Result, check_finite, check_length};
use crate::optim::norm;
use crate::score::Examination;
use serde::Serialize;

/// Version of the checkpoint format.
pub(crate) const CHECKPOINT_VERSION: u32 = 2;

/// What a run is watched by: a truth to be scored against, and validation demonstrations for early stopping.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Scores every recorded step.
    pub examination: Option<&'a Examination<'a>>,
    /// Validation demonstrations, as a problem of their own.
    pub validation: Option<&'a Problem<'a>>,
}

/// Runs a learner from its start. `settings.method` is what the result remembers of the learner: its own settings, or an entry of a
/// registry that stands for them.
pub fn run<L: Learner, M: Clone + Serialize>(
    learner: &L,
    problem: &Problem<'_>,
    settings: &Settings<M>,
    watch: Watch<'_>,
    recorder: &mut dyn Recorder,
) -> Result<Fitted<M>> {
    let settings = settings.shared_resolved_for(learner, problem, watch.validation.is_some())?;
    let driver = Driver::new(learner, problem, &settings, watch)?;
    let from = Start { initial: settings.initial.as_deref(), seed: settings.seed };
    let progress = driver.begin(learner.start(problem, from)?)?;
    driver.drive(progress, recorder)
}

/// Goes on from a checkpoint, to the same result as an uninterrupted run. The checkpoint must belong to this model and
/// these demonstrations.
pub fn resume<L: Learner, M: Clone + Serialize>(
    learner: &L,
    problem: &Problem<'_>,
    checkpoint: Checkpoint<M>,
    watch: Watch<'_>,
    recorder: &mut dyn Recorder,
) -> Result<Fitted<M>> {
    let settings = checkpoint.settings.shared_resolved_for(learner, problem, watch.validation.is_some())?;
    let driver = Driver::new(learner, problem, &settings, watch)?;
    let progress = driver.go_on(checkpoint)?;
    driver.drive(progress, recorder)
}

/// What does not change during a run.
struct Driver<'r, 'a, L, M> {
    learner: &'r L,
    problem: &'r Problem<'a>,
    settings: &'r Settings<M>,
    watch: Watch<'r>,
    digest: String,
    /// Number of the last step.
    last: u64,
    /// Plans that the problem's planner had made before.
    plans_before: u64,
}

/// Where a run is.
struct Progress<S> {
    state: S,
    step: u64,
    demonstrations: u64,
    history: Vec<Record>,
    patience: Patience,
    /// Plans of the run before it was interrupted, and plans made for the record, which are not the learner's.
    earlier_plans: u64,
    recording_plans: u64,
    status: Option<Status>,
}

impl<'r, 'a, L: Learner, M: Clone + Serialize> Driver<'r, 'a, L, M> {
    fn new(learner: &'r L, problem: &'r Problem<'a>, settings: &'r Settings<M>, watch: Watch<'r>) -> Result<Self> {
        if let Some(initial) = &settings.initial {
            check_length("initial mapping", problem.n_parameters(), initial.len())?;
            check_finite("initial mapping", initial)?;
        }
        check_stop_rules(settings, problem, watch.validation)?;
        check_has_loss(learner, settings)?;
        let last = settings.stop.max_steps.map_or_else(|| learner.default_steps(problem), Ok)?;
        let (digest, plans_before) = (problem.digest(), problem.planner().plans());
        Ok(Self { learner, problem, settings, watch, digest, last, plans_before })
    }

    /// The start of a run, recorded.
    fn begin(&self, state: L::State) -> Result<Progress<L::State>> {
        let mut progress = Progress {
            state,
            step: 0,
            demonstrations: 0,
            history: Vec::new(),
            patience: Patience::default(),
            earlier_plans: 0,
            recording_plans: 0,
            status: None,
        };
        let first = self.recorded(&mut progress, Record::default())?;
        progress.history.push(first);
        Ok(progress)
    }

    /// The run as a checkpoint has it.
    fn go_on(&self, checkpoint: Checkpoint<M>) -> Result<Progress<L::State>> {
        let refuse = |reason: String| Err(Error::Checkpoint { reason });
        if checkpoint.version != CHECKPOINT_VERSION {
            return refuse(format!("version {}; this program reads version {CHECKPOINT_VERSION}", checkpoint.version));
        }
        if checkpoint.digest != self.digest {
            let (then, now) = (&checkpoint.digest, &self.digest);
            return refuse(format!("it belongs to other data (digest {then:.12}…, not {now:.12}…)"));
        }
        let Checkpoint { step, history, patience, planner_calls: earlier_plans, ended: status, state, .. } = checkpoint;
        let state = self.restored(state)?;
        if let Some(mapping) = self.learner.mapping(&state) {
            check_length("mapping of the checkpoint", self.problem.n_parameters(), mapping.len())?;
        }
        let demonstrations = history.last().map_or(0, |record| record.demonstrations);
        Ok(Progress { state, step, demonstrations, history, patience, earlier_plans, recording_plans: 0, status })
    }

    /// Steps until something ends the run.
    fn drive(&self, mut progress: Progress<L::State>, recorder: &mut dyn Recorder) -> Result<Fitted<M>> {
        recorder.begin(Some(self.last.saturating_sub(progress.step)));
        if progress.status.is_none() && progress.step >= self.last {
            progress.status = Some(Status::StepLimit);
        }
        while progress.status.is_none() {
            let record = self.advance(&mut progress)?;
            let snapshot = Snapshot {
                agent: &|| self.learner.agent(&progress.state, self.problem),
                checkpoint: &|| self.checkpoint(&progress),
            };
            if recorder.step(&record, &snapshot)?.is_break() {
                progress.status.get_or_insert(Status::Interrupted);
            }
        }
        self.finish(progress)
    }

    /// One step with its record, and whether it was the last.
    fn advance(&self, progress: &mut Progress<L::State>) -> Result<Record> {
        let Settings { stop, record_every, seed, .. } = self.settings;
        progress.step += 1;
        let run = Run { step: progress.step, last: self.last, seed: *seed };
        let done = self.learner.step(&mut progress.state, self.problem, run)?;
        let mut record = Record { step: progress.step, planner_calls: self.plans(progress), ..done.record };
        record.check()?;
        progress.demonstrations = progress.demonstrations.max(record.demonstrations);
        progress.status = if done.finished {
            Some(self.learner.end_status(&progress.state))
        } else if stop.gap.zip(record.gap).is_some_and(|(wanted, gap)| gap <= wanted) {
            Some(Status::GapReached)
        } else {
            (progress.step >= self.last).then_some(Status::StepLimit)
        };
        let every = record_every.unwrap_or_default();
        if progress.status.is_some() || (every > 0 && progress.step.is_multiple_of(every)) {
            record = self.recorded(progress, record)?;
            if progress.status.is_none() {
                progress.status = self.stopped(progress, &record)?;
            }
            progress.history.push(record.clone());
        }
        Ok(record)
    }

    /// Plans of the learner so far.
    fn plans(&self, progress: &Progress<L::State>) -> u64 {
        let made = self.problem.planner().plans() - self.plans_before - progress.recording_plans;
        progress.earlier_plans.saturating_add(made)
    }

    fn checkpoint(&self, progress: &Progress<L::State>) -> Result<serde_json::Value> {
        kept(&Checkpoint {
            version: CHECKPOINT_VERSION,
            settings: self.settings.clone(),
            digest: self.digest.clone(),
            step: progress.step,
            planner_calls: self.plans(progress),
            history: progress.history.clone(),
            state: kept(&progress.state)?,
            patience: progress.patience.clone(),
            // The number of steps is the caller's to raise when the run goes on.
            ended: progress.status.filter(|status| *status != Status::StepLimit),
        })
    }

    fn restored(&self, state: serde_json::Value) -> Result<L::State> {
        let damaged = |reason: String| Error::Checkpoint { reason: format!("its state is damaged: {reason}") };
        let state: L::State = serde_json::from_value(state).map_err(|error| damaged(error.to_string()))?;
        if self.learner.fits(&state, self.problem) {
            return Ok(state);
        }
        Err(damaged("its lists are not as long as the problem needs".into()))
    }

    /// The record with what costs plans: losses and scores of what was learned as it stands.
    fn recorded(&self, progress: &mut Progress<L::State>, mut record: Record) -> Result<Record> {
        let (learner, problem, state) = (self.learner, self.problem, &progress.state);
        if let Some(mapping) = learner.mapping(state) {
            check_finite("mapping", &mapping)?;
        }
        let before = problem.planner().plans();
        if self.settings.record_loss.unwrap_or(true) && problem.data().has_expectations() {
            record.loss = learner.loss(state, problem)?;
            if let Some((log_likelihood, accuracy)) = learner.explained_actions(state, problem)? {
                (record.log_likelihood, record.training_accuracy) = (Some(log_likelihood), Some(accuracy));
            }
        }
        match (self.watch.validation, self.settings.stop.watched.unwrap_or_default()) {
            (Some(validation), Watched::Loss) => {
                record.validation_loss = learner.validation_loss(state, problem, validation)?;
            }
            (Some(validation), Watched::Accuracy) => {
                record.validation_accuracy = Some(validation.accuracy(&learner.agent(state, problem)?)?);
            }
            (None, _) => {}
        }
        if let Some(examination) = self.watch.examination {
            record.score = Some(examination.score(&learner.agent(state, problem)?)?);
        }
        progress.recording_plans += problem.planner().plans() - before;
        record.check()?;
        Ok(record)
    }

    /// Whether a recorded step is enough, or enough of them were no better.
    fn stopped(&self, progress: &mut Progress<L::State>, record: &Record) -> Result<Option<Status>> {
        let stop = &self.settings.stop;
        if stop.loss.zip(record.loss).is_some_and(|(wanted, loss)| loss <= wanted) {
            return Ok(Some(Status::LossReached));
        }
        let watched = record.validation_loss.or(record.validation_accuracy.map(|accuracy| -accuracy));
        let may_stop = self.learner.may_stop(&progress.state);
        let Some((most, loss)) = stop.patience.zip(watched).filter(|_| may_stop) else {
            return Ok(None);
        };
        let patience = &mut progress.patience;
        if patience.best.is_none_or(|best| loss < best) {
            *patience = Patience { best: Some(loss), state: Some(kept(&progress.state)?), waited: 0 };
            return Ok(None);
        }
        patience.waited += 1;
        Ok((patience.waited >= most).then_some(Status::ValidationStalled))
    }

    fn finish(&self, mut progress: Progress<L::State>) -> Result<Fitted<M>> {
        let (status, planner_calls) = (progress.status.unwrap_or(Status::Finished), self.plans(&progress));
        if let (Status::ValidationStalled, Some(best)) = (status, progress.patience.state.take()) {
            progress.state = self.restored(best)?;
        }
        Ok(Fitted {
            certificate: self.certificate(&progress)?,
            agent: self.learner.agent(&progress.state, self.problem)?,
            status,
            demonstrations: progress.demonstrations,
            settings: self.settings.clone(),
            names: self.problem.model().names().clone(),
            digest: self.digest.clone(),
            history: progress.history,
            planner_calls,
            steps: progress.step,
        })
    }

    fn certificate(&self, progress: &Progress<L::State>) -> Result<RunCertificate> {
        let (learner, problem, state) = (self.learner, self.problem, &progress.state);
        let known = self.settings.record_loss.unwrap_or(true) && problem.data().has_expectations();
        let loss = if known { learner.loss(state, problem)? } else { None };
        let last_iterate_loss = match learner.last_iterate(state) {
            Some(mapping) if known => problem.unit_loss(&mapping)?,
            _ => None,
        };
        let unnormalised_loss = loss.zip(learner.mapping(state)).map(|(loss, mapping)| loss * norm(&mapping));
        let (bound, mut guarantee) = learner.guarantee(state, problem, progress.step)?;
        // What overflows bounds nothing.
        let overflows = bound.is_some_and(|bound| !bound.is_finite());
        if overflows {
            guarantee = Guarantee::none("overflowed");
        }
        let game_value = learner.game(state);
        let told = [
            ("loss", loss),
            ("loss of the last iterate", last_iterate_loss),
            ("loss as it stands", unnormalised_loss),
            ("value of the game", game_value.as_ref().map(|game| game.lower)),
            ("value of the game", game_value.as_ref().map(|game| game.upper)),
        ];
        check_numbers(progress.step, &told)?;
        let last = progress.history.last();
        Ok(RunCertificate {
            loss,
            last_iterate_loss,
            unnormalised_loss,
            bound: bound.filter(|_| !overflows),
            guarantee,
            gap: last.and_then(|record| record.gap),
            distance: last.and_then(|record| record.distance),
            game_value,
            bias_bound: problem.data().bias_bound(),
            explained: learner.explained(state, problem)?,
        })
    }
}

/// Refuses stop rules that lack what they look at, rather than let a run go on as if they were not there.
fn check_stop_rules<M>(settings: &Settings<M>, problem: &Problem<'_>, validation: Option<&Problem<'_>>) -> Result<()> {
    let Settings { stop, record_every, record_loss, .. } = settings;
    let refuse = |name, value: String, reason| Err(Error::InvalidSetting { name, value, reason });
    for (name, wanted) in [("stop.loss", stop.loss), ("stop.gap", stop.gap)] {
        if let Some(value) = wanted.filter(|value| !value.is_finite()) {
            return refuse(name, value.to_string(), "expected a finite number");
        }
    }
    let never_recorded = *record_every == Some(0);
    if let Some(loss) = stop.loss {
        if never_recorded || *record_loss == Some(false) {
            let reason = "the loss is not recorded; set record_every and record_loss";
            return refuse("stop.loss", loss.to_string(), reason);
        }
        if !problem.data().has_expectations() {
            return refuse("stop.loss", loss.to_string(), "there are no demonstrations to have a loss on");
        }
    }
    if let Some(patience) = stop.patience {
        if never_recorded {
            return refuse("stop.patience", patience.to_string(), "it counts records; set record_every");
        }
        let Some(validation) = validation else {
            let reason = "there are no validation demonstrations to watch";
            return refuse("stop.patience", patience.to_string(), reason);
        };
        if stop.watched == Some(Watched::Accuracy) {
            validation.data().actions().or_refuse("stopping by accuracy")?;
        }
    }
    Ok(())
}

/// Refuses to stop by a loss that the method does not have.
fn check_has_loss<L: Learner, M>(learner: &L, settings: &Settings<M>) -> Result<()> {
    let stop = &settings.stop;
    let by_loss = stop.loss.filter(|_| !learner.has_loss()).map(|loss| ("stop.loss", loss.to_string()));
    let watches_loss = stop.watched.unwrap_or_default() == Watched::Loss;
    let by_patience = stop.patience.filter(|_| watches_loss && !learner.can_be_validated());
    match by_loss.or(by_patience.map(|patience| ("stop.patience", patience.to_string()))) {
        Some((name, value)) => {
            let reason = "the method learns no mapping, which alone has a loss";
            Err(Error::InvalidSetting { name, value, reason })
        }
        None => Ok(()),
    }
}

/// A state as a checkpoint keeps it.
fn kept<T: Serialize>(state: &T) -> Result<serde_json::Value> {
    serde_json::to_value(state).map_err(|error| Error::Checkpoint { reason: error.to_string() })
}
