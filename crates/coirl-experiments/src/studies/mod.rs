//! What can be studied: each study runs all methods with one seed and returns curves.

mod guarantees;
mod interactive;
mod offline;
mod online;
mod patients;
mod run_time;

pub use guarantees::Guarantees;
pub use interactive::Interactive;
pub use offline::Offline;
pub use online::Online;
pub use patients::Patients;
pub use run_time::RunTime;

use super::curves::Curve;
use super::experiment::{Entrant, Given, Watcher};
use super::world::{Place, Subject, World};
use coirl::learn::{Record, Recorder, Snapshot};
use coirl::score::Score;
use coirl::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// What is studied, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Study {
    /// What an iteration costs, and what it brings, by the number of contexts.
    RunTime(RunTime),
    /// Contexts come one by one, and each shows its expert.
    Online(Online),
    /// Contexts come one by one, and an expert shows something where the agent does badly.
    Interactive(Interactive),
    /// Everything is learned from so many contexts.
    Offline(Offline),
    /// The way from a table of patients to a policy.
    Patients(Patients),
    /// What theorems promise, and what happens.
    Guarantees(Guarantees),
}

impl Study {
    /// Where it takes place; a table of patients is in no model of its own.
    pub fn place(&self) -> Option<Place> {
        match self {
            Study::RunTime(study) => Some(study.place),
            Study::Online(study) => Some(study.place),
            Study::Interactive(study) => Some(study.place),
            Study::Offline(study) => Some(study.place),
            Study::Guarantees(study) => Some(study.place),
            Study::Patients(_) => None,
        }
    }

    /// Whether it may be taken for medical advice.
    pub fn is_clinical(&self) -> bool {
        matches!(self.place(), None | Some(Place::Sepsis | Place::SepsisThreshold))
    }

    pub(super) fn check(&self) -> Result<()> {
        match self {
            Study::RunTime(study) => counts("study.contexts", &study.contexts),
            Study::Online(study) => counts("study.contexts", &[study.contexts, study.test_contexts]),
            Study::Interactive(study) => counts("study.contexts", &[study.contexts, study.test_contexts]),
            Study::Offline(study) => counts("study.contexts", &study.contexts),
            Study::Patients(study) => counts("study.stays", &[study.stays]),
            Study::Guarantees(study) => counts("study.contexts", &study.contexts),
        }
    }

    /// All methods with one seed.
    pub(super) fn run(
        &self,
        methods: &[Entrant],
        number: usize,
        seed: u64,
        given: &Given,
        watcher: Watcher<'_>,
    ) -> Result<Vec<Curve>> {
        let run = Run { number, seed, given, watcher };
        match self {
            Study::RunTime(study) => study.run(methods, &run),
            Study::Online(study) => study.run(methods, &run),
            Study::Interactive(study) => study.run(methods, &run),
            Study::Offline(study) => study.run(methods, &run),
            Study::Patients(study) => study.run(methods, &run),
            Study::Guarantees(study) => study.run(methods, &run),
        }
    }
}

/// One seed of a study.
struct Run<'r> {
    number: usize,
    seed: u64,
    given: &'r Given,
    watcher: Watcher<'r>,
}

impl Run<'_> {
    /// The place, with the experts that were given.
    fn world(&self, place: Place) -> Result<World> {
        let world = World::new(place)?;
        match &self.given.mapping {
            Some(mapping) => world.with_truth(mapping.clone()),
            None => Ok(world),
        }
    }

    /// Contexts to learn from: those that were given, or drawn ones. What is given goes through the same checks as a table of contexts.
    fn subjects(&self, world: &World, n: usize) -> Result<Vec<Subject>> {
        let Some(contexts) = Given::of(&self.given.contexts, self.number) else { return world.subjects(n, self.seed) };
        if contexts.len() < n {
            return Err(Error::shape("contexts given", format!("at least {n}"), contexts.len()));
        }
        Ok(contexts[..n].iter().map(|context| Subject { context: context.clone(), start: None }).collect())
    }

    /// W₁ where one was given.
    fn initial(&self) -> Option<Vec<f64>> {
        Given::of(&self.given.initial, self.number).cloned()
    }

    /// Says that a share of a method is done.
    fn tell(&self, method: &str, done: f64) -> Result<()> {
        match (self.watcher)(method, done) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted { done: self.number, total: self.number + 1 }),
        }
    }

    /// Runs every method, several at a time; curves come in the order of the methods.
    fn each(&self, methods: &[Entrant], one: impl Fn(&Entrant) -> Result<Vec<Curve>> + Sync) -> Result<Vec<Curve>> {
        let whole = |entrant: &Entrant| {
            self.tell(&entrant.name, 0.0)?;
            let curves = one(entrant)?;
            self.tell(&entrant.name, 1.0)?;
            Ok(curves)
        };
        let curves: Vec<Vec<Curve>> = methods.par_iter().map(whole).collect::<Result<_>>()?;
        Ok(curves.into_iter().flatten().collect())
    }
}

/// Tells of the steps of a fit.
struct Told<'r> {
    run: &'r Run<'r>,
    method: &'r str,
    steps: u64,
}

impl Recorder for Told<'_> {
    fn step(&mut self, record: &Record, _: &Snapshot<'_>) -> Result<ControlFlow<()>> {
        self.run.tell(self.method, (record.step as f64 / self.steps.max(1) as f64).min(1.0))?;
        Ok(ControlFlow::Continue(()))
    }
}

/// A number of a score, with its name.
type Measure = (&'static str, fn(&Score) -> f64);

/// What is measured of a score.
const SCORES: [Measure; 6] = [
    ("value", |score| score.value_ratio),
    ("value above random", |score| score.relative_value),
    ("accuracy", |score| score.accuracy),
    ("optimal actions", |score| score.optimal_accuracy),
    ("accuracy on the way", |score| score.visited_accuracy),
    ("loss", |score| score.held_out_loss.unwrap_or(f64::NAN)),
];

/// The curves of scores along something, named with a remark.
fn score_curves(method: &str, remark: &str, scores: &[(f64, Score)]) -> Vec<Curve> {
    let curve = |(measure, of): Measure| {
        Curve::new(method, format!("{measure}{remark}"), scores.iter().map(|(x, score)| (*x, of(score))))
    };
    SCORES.into_iter().map(curve).filter(|curve| !curve.points.is_empty()).collect()
}

fn counts(place: &str, values: &[usize]) -> Result<()> {
    if values.is_empty() || values.contains(&0) {
        return Err(Error::Spec { place: place.into(), reason: format!("{values:?}; expected numbers of at least 1") });
    }
    Ok(())
}
