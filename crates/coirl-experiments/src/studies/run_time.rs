//! Apprenticeship learning with the contexts inside the state against learners that look at a few contexts at a time, by the number of
//! contexts: what a step costs, and what all steps reach on the contexts learned from and on others. What costs time is counted in Bellman
//! backups: one for each sweep, state and action of a context; every plan starts from scratch.

use super::{Run, score_curves};
use crate::curves::Curve;
use crate::experiment::Entrant;
use crate::world::{Place, Seen, Subject};
use coirl::Result;
use coirl::learn::{Problem, Record, Recorder, Snapshot, Watch};
use coirl::methods::fit;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Settings of a study of run-times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunTime {
    /// Where.
    pub place: Place,
    /// Numbers of contexts to learn from.
    pub contexts: Vec<usize>,
    /// Contexts to be examined in.
    pub test_contexts: usize,
    /// Steps between two examinations of the run with the most contexts, whose value is drawn against its cost.
    pub every: u64,
}

impl RunTime {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        let world = run.world(self.place)?;
        let examination = world.examination(self.test_contexts, run.seed)?;
        let most = self.contexts.iter().copied().max().unwrap_or(0);
        let subjects = run.subjects(&world, most)?;
        let n_parameters = world.truth().dimension() * world.model().n_features();
        let mut curves = Vec::new();
        // One after the other: seconds are compared as well.
        for entrant in methods {
            let (mut costs, mut totals) = (Vec::new(), Vec::new());
            let (mut training, mut test) = (Vec::new(), Vec::new());
            for (i, &n) in self.contexts.iter().enumerate() {
                run.tell(&entrant.name, i as f64 / self.contexts.len() as f64)?;
                let seen: &[Subject] = &subjects[..n];
                let train = world.demonstrations(seen, Seen::FeatureExpectations, run.seed)?;
                let problem = Problem::new(world.model(), &train, entrant.estimator().as_ref())?.without_memory();
                let mut settings = entrant.settings(problem.len(), run.seed);
                settings.initial = Some(run.initial().unwrap_or_else(|| vec![1.0 / n_parameters as f64; n_parameters]));
                settings.record_every = Some(if n == most { self.every } else { 0 });
                let on_training = world.examination_on(seen)?;
                let mut spent = Spent { problem: &problem, steps: Vec::new() };
                let watch = Watch { examination: (n == most).then_some(&on_training), validation: None };
                let fitted = fit(&problem, &settings, watch, &mut spent)?;
                let (x, backups) = (n as f64, problem.planner().backups() as f64);
                costs.push((x, backups / fitted.steps.max(1) as f64));
                totals.push((x, backups));
                training.push((x, on_training.score(&fitted.agent)?));
                test.push((x, examination.score(&fitted.agent)?));
                if n == most {
                    let at = |step: u64| spent.steps.iter().find(|(taken, _)| *taken == step).map(|(_, cost)| *cost);
                    let scored: Vec<_> = fitted
                        .history
                        .iter()
                        .filter_map(|record| Some((at(record.step)? as f64, record.score?)))
                        .collect();
                    curves.extend(score_curves(&entrant.name, " by backups", &scored));
                }
            }
            curves.push(Curve::new(&entrant.name, "backups per step", costs));
            curves.push(Curve::new(&entrant.name, "backups", totals));
            curves.extend(score_curves(&entrant.name, ", training contexts", &training));
            curves.extend(score_curves(&entrant.name, "", &test));
            run.tell(&entrant.name, 1.0)?;
        }
        Ok(curves)
    }
}

/// The backups that every step had cost when it was recorded.
struct Spent<'s> {
    problem: &'s Problem<'s>,
    steps: Vec<(u64, u64)>,
}

impl Recorder for Spent<'_> {
    fn step(&mut self, record: &Record, _: &Snapshot<'_>) -> Result<ControlFlow<()>> {
        self.steps.push((record.step, self.problem.planner().backups()));
        Ok(ControlFlow::Continue(()))
    }
}
