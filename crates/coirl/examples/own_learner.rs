//! A learner of your own: Polyak's subgradient method, in sixty lines.
//!
//! ```sh
//! cargo run --release -p coirl --example own_learner
//! ```
//!
//! Where demonstrations are exact the least loss is zero, and Polyak's step (1969) is as long as the loss is far from it:
//! W ← W − Loss(W)/‖g‖² · g. The learner says how it starts and takes one step; checkpoints, exact resume, records, stop rules, early
//! stopping and scores come with the loop.
#![allow(clippy::print_stdout, unreachable_pub)] // an example speaks, and a test calls it

use coirl::demos::{Demonstration, Split};
use coirl::domains::Driving;
use coirl::learn::{self, Learner, Problem, Record, Recorder, Run, Settings, Snapshot, Start, Status, Step, Watch};
use coirl::mapping::LinearMapping;
use coirl::optim::{dot, norm};
use coirl::plan::ManyOptions;
use coirl::score::Examination;
use std::ops::ControlFlow;

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Polyak {
    /// The least loss; zero for exact demonstrations of a linear mapping.
    least: f64,
}

/// What is kept between two steps: all that a checkpoint needs.
#[derive(serde::Serialize, serde::Deserialize)]
struct State {
    iterate: Vec<f64>,
}

impl Learner for Polyak {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> coirl::Result<State> {
        Ok(State { iterate: from.initial.map_or_else(|| vec![1.0; problem.n_parameters()], <[f64]>::to_vec) })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> coirl::Result<Step> {
        let loss = problem.loss(&state.iterate, &problem.data().all())?;
        let squared = dot(&loss.subgradient, &loss.subgradient);
        let length = if squared > 0.0 { (loss.value - self.least) / squared } else { 0.0 };
        state.iterate.iter_mut().zip(&loss.subgradient).for_each(|(w, g)| *w -= length * g);
        let record = Record { batch_loss: Some(loss.value), step_size: Some(length), ..Record::default() };
        Ok(Step { record, finished: length == 0.0 || norm(&state.iterate) == 0.0 })
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        Some(state.iterate.clone())
    }

    fn has_loss(&self) -> bool {
        true
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        state.iterate.len() == problem.n_parameters()
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> coirl::Result<u64> {
        Ok(200)
    }
}

/// Stops after some steps and keeps the checkpoint, as Ctrl-C would.
struct StopAfter(u64, Option<learn::Checkpoint<Polyak>>);

impl Recorder for StopAfter {
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        if record.step < self.0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.1 = Some(snapshot.checkpoint()?);
        Ok(ControlFlow::Break(()))
    }
}

/// Learns, and shows what came of it.
pub fn main() -> coirl::Result<()> {
    let model = Driving::default().build()?;
    let truth = LinearMapping::new(3, 3, vec![1.0, 0.0, 0.0, 0.0, -4.0, 0.0, 0.0, 0.0, -2.0])?;
    let contexts = model.context_space().sample(40, 1)?;
    let plans = coirl::contextual::plan_mapping(&model, &truth, &contexts, ManyOptions::default())?;
    let shown = contexts.into_iter().zip(plans).map(|(context, plan)| {
        Demonstration::from_feature_expectations(&model, context, plan.feature_expectations.unwrap_or_default())
    });
    let Split { train, validation, .. } = Split::random(shown.collect::<coirl::Result<_>>()?, 0.25, 0.0, 0)?;

    let problem = Problem::new(&model, &train, None)?;
    let held_out = Problem::validation(&model, &validation, None)?;
    let examination = Examination::new(&model, &truth, model.context_space().sample(80, 2)?)?;
    let watch = Watch { examination: Some(&examination), validation: Some(&held_out) };
    let learner = Polyak::default();
    let settings = Settings { record_every: Some(1), ..Settings::new(learner.clone()) };
    let whole = learn::run(&learner, &problem, &settings, watch, &mut ())?;
    for record in &whole.history {
        let reached = record.score.map_or(f64::NAN, |score| score.relative_value);
        println!(
            "step {:>3}: loss {:.6}, {:.4} of the expert's gain over chance",
            record.step,
            record.loss.unwrap_or(f64::NAN),
            reached
        );
    }

    // Interrupted and resumed, it comes to the same numbers.
    let mut stopped = StopAfter(3, None);
    let part = learn::run(&learner, &problem, &settings, watch, &mut stopped)?;
    assert_eq!(part.status, Status::Interrupted);
    if let Some(checkpoint) = stopped.1 {
        let resumed = learn::resume(&learner, &problem, checkpoint, watch, &mut ())?;
        assert_eq!((resumed.mapping()?, resumed.steps), (whole.mapping()?, whole.steps));
        println!("{:?} after {} steps; interrupted and resumed: the same mapping", whole.status, whole.steps);
    }
    Ok(())
}
