//! Contexts come one by one, each with its demonstration; the agent is examined on the way in held-out contexts.

use super::{Run, Told, score_curves};
use crate::curves::Curve;
use crate::experiment::Entrant;
use crate::world::{Place, Seen};
use coirl::Result;
use coirl::learn::{Problem, Watch};
use coirl::methods::fit;
use coirl::model::ContextSpace;
use coirl::score::Score;
use serde::{Deserialize, Serialize};

/// Settings of an online study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Online {
    /// Where.
    pub place: Place,
    /// What is seen of experts.
    #[serde(default)]
    pub seen: Seen,
    /// Contexts that come.
    pub contexts: usize,
    /// Contexts between two examinations.
    pub every: u64,
    /// Contexts to be examined in.
    pub test_contexts: usize,
    /// W₁.
    #[serde(default)]
    pub initial: Initial,
}

/// Where learning starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// A random point of the simplex, the same for all methods.
    #[default]
    Simplex,
    /// Zero.
    Zero,
    /// What each method usually starts from.
    Usual,
}

impl Online {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        let world = run.world(self.place)?;
        let subjects = run.subjects(&world, self.contexts)?;
        let train = world.demonstrations(&subjects, self.seen, run.seed)?;
        let examination = world.examination(self.test_contexts, run.seed)?;
        let n_parameters = world.truth().dimension() * world.model().n_features();
        let drawn = match self.initial {
            Initial::Simplex => {
                let point = ContextSpace::Simplex { dimension: n_parameters }.sample(1, run.seed)?;
                point.first().map(|point| point.values().to_vec())
            }
            Initial::Zero => Some(vec![0.0; n_parameters]),
            Initial::Usual => None,
        };
        let initial = run.initial().or(drawn);
        run.each(methods, |entrant| {
            let problem = Problem::new(world.model(), &train, entrant.estimator().as_ref())?;
            let mut settings = entrant.settings(problem.len(), run.seed);
            let steps = *settings.stop.max_steps.get_or_insert(self.contexts as u64);
            settings.initial.clone_from(&initial);
            settings.record_every = Some(self.every);
            let mut told = Told { run, method: &entrant.name, steps };
            let watch = Watch { examination: Some(&examination), validation: None };
            let fitted = fit(&problem, &settings, watch, &mut told)?;
            let scored = |x: fn(&coirl::learn::Record) -> u64| -> Vec<(f64, Score)> {
                fitted.history.iter().filter_map(|record| Some((x(record) as f64, record.score?))).collect()
            };
            let mut curves = score_curves(&entrant.name, "", &scored(|record| record.step));
            let by_plans = scored(|record| record.planner_calls);
            let values = by_plans.iter().map(|(plans, score)| (*plans, score.value_ratio));
            curves.push(Curve::new(&entrant.name, "value by planner calls", values));
            let plans = fitted.history.iter().map(|record| (record.step as f64, record.planner_calls as f64));
            curves.push(Curve::new(&entrant.name, "planner calls", plans));
            Ok(curves)
        })
    }
}
