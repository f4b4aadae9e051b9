//! Contexts come one by one; an expert watches, and shows something where the agent misses more than a tolerance.

use super::{Run, Told, score_curves};
use crate::curves::Curve;
use crate::experiment::Entrant;
use crate::world::Place;
use coirl::Result;
use coirl::demos::SimulatedExpert;
use coirl::learn::{Problem, Watch};
use coirl::methods::fit;
use coirl::model::Context;
use coirl::score::Score;
use serde::{Deserialize, Serialize};

/// Settings of an interactive study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interactive {
    /// Where.
    pub place: Place,
    /// Contexts that come.
    pub contexts: usize,
    /// Contexts between two examinations.
    pub every: u64,
    /// Contexts to be examined in.
    pub test_contexts: usize,
    /// What the expert lets pass, of the value scaled by (1 − γ)/k.
    pub tolerance: f64,
}

impl Interactive {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        let world = run.world(self.place)?;
        let model = world.model();
        let contexts: Vec<Context> =
            run.subjects(&world, self.contexts)?.into_iter().map(|subject| subject.context).collect();
        let examination = world.examination(self.test_contexts, run.seed)?;
        let tolerance = self.tolerance * model.n_features() as f64 / (1.0 - model.criterion().discount());
        let expert = SimulatedExpert::new(model, world.linear_truth()?.clone(), tolerance, run.seed)?;
        run.each(methods, |entrant| {
            let problem = Problem::interactive(model, contexts.clone(), &expert)?;
            let mut settings = entrant.settings(problem.len(), run.seed);
            settings.initial = run.initial();
            settings.record_every = Some(self.every);
            let mut told = Told { run, method: &entrant.name, steps: self.contexts as u64 };
            let watch = Watch { examination: Some(&examination), validation: None };
            let fitted = fit(&problem, &settings, watch, &mut told)?;
            let scores: Vec<(f64, Score)> =
                fitted.history.iter().filter_map(|record| Some((record.step as f64, record.score?))).collect();
            let mut curves = score_curves(&entrant.name, "", &scores);
            let counted = |of: fn(&coirl::learn::Record) -> u64| {
                fitted.history.iter().map(move |record| (record.step as f64, of(record) as f64))
            };
            curves.push(Curve::new(&entrant.name, "demonstrations", counted(|record| record.demonstrations)));
            curves.push(Curve::new(&entrant.name, "planner calls", counted(|record| record.planner_calls)));
            let by_demonstrations = fitted
                .history
                .iter()
                .filter_map(|record| Some((record.demonstrations as f64, record.score?.value_ratio)));
            curves.push(Curve::new(&entrant.name, "value by demonstrations", by_demonstrations));
            Ok(curves)
        })
    }
}
