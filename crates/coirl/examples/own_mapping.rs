//! A mapping of your own, learned: f_k(c) = a_k · tanh(b_k · c), a reward that saturates as a priority grows.
//!
//! ```sh
//! cargo run --release -p coirl --example own_mapping
//! ```
//!
//! A mapping says what it gives a context and how a gradient by these weights comes back to its parameters. With an objective and a step
//! rule it is a learner: Algorithm 1 over your mapping.
#![allow(clippy::print_stdout, unreachable_pub)] // an example speaks, and a test calls it

use coirl::agent::Agent;
use coirl::demos::{Demonstration, Train};
use coirl::domains::Driving;
use coirl::learn::{self, Batch, Descent, Problem, Settings, Start, Watch};
use coirl::mapping::{ParametricMapping, RewardMapping};
use coirl::model::Context;
use coirl::objective::{Loss, Objective};
use coirl::optim::{MirrorMap, MirrorStep, Set, StepLength, dot};
use coirl::plan::ManyOptions;
use coirl::score::Examination;

/// a and b, for k features and contexts of d numbers: a first, then the rows of b.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Saturating {
    dimension: usize,
    parameters: Vec<f64>,
}

impl Saturating {
    fn new(dimension: usize, a: &[f64], b: &[f64]) -> Self {
        Self { dimension, parameters: [a, b].concat() }
    }

    /// a_k and b_k.
    fn of_feature(&self, k: usize) -> (f64, &[f64]) {
        let (a, b) = self.parameters.split_at(self.n_features());
        (a[k], &b[k * self.dimension..(k + 1) * self.dimension])
    }
}

impl RewardMapping for Saturating {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn n_features(&self) -> usize {
        self.parameters.len() / (1 + self.dimension)
    }

    fn weights(&self, context: &Context) -> coirl::Result<Vec<f64>> {
        coirl::check::check_length("context", self.dimension, context.values().len())?;
        let weight = |k: usize| {
            let (a, b) = self.of_feature(k);
            a * dot(b, context.values()).tanh()
        };
        Ok((0..self.n_features()).map(weight).collect())
    }
}

impl ParametricMapping for Saturating {
    type Number = f64;
    type Pass = ();

    fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut [f64] {
        &mut self.parameters
    }

    fn forward(&self, contexts: &[&Context]) -> coirl::Result<(Vec<f64>, ())> {
        let rows: Vec<Vec<f64>> = contexts.iter().map(|context| self.weights(context)).collect::<coirl::Result<_>>()?;
        Ok((rows.concat(), ()))
    }

    /// ∂f_k/∂a_k = tanh(b_k·c) and ∂f_k/∂b_k = a_k (1 − tanh²(b_k·c)) c.
    fn pull_back(
        &self,
        contexts: &[&Context],
        _pass: &(),
        by_weights: &[f64],
        by_parameters: &mut Vec<f64>,
    ) -> coirl::Result<()> {
        let n = self.n_features();
        by_parameters.clear();
        by_parameters.resize(self.parameters.len(), 0.0);
        for (context, upstream) in contexts.iter().zip(by_weights.chunks_exact(n)) {
            for (k, g) in upstream.iter().enumerate() {
                let (a, b) = self.of_feature(k);
                let tanh = dot(b, context.values()).tanh();
                by_parameters[k] += g * tanh;
                let row = &mut by_parameters[n + k * self.dimension..][..self.dimension];
                row.iter_mut().zip(context.values()).for_each(|(sum, c)| *sum += g * a * (1.0 - tanh * tanh) * c);
            }
        }
        Ok(())
    }
}

/// The agent of the mapping plans for it.
impl From<Saturating> for Agent {
    fn from(mapping: Saturating) -> Self {
        Agent::own(mapping)
    }
}

/// Descent on the loss of the paper, over this mapping.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
struct SaturatingDescent {}

impl Descent for SaturatingDescent {
    type Mapping = Saturating;
    type Rule = MirrorStep;

    fn first(&self, problem: &Problem<'_>, _from: Start<'_>) -> coirl::Result<Saturating> {
        let (d, k) = (problem.data().dimension(), problem.n_features());
        Ok(Saturating::new(d, &vec![0.5; k], &vec![1.0; k * d]))
    }

    fn objective(&self, _problem: &Problem<'_>) -> Box<dyn Objective> {
        Box::new(Loss)
    }

    fn rule(&self, _problem: &Problem<'_>) -> coirl::Result<MirrorStep> {
        Ok(MirrorStep {
            map: MirrorMap::Euclidean(Set::Everywhere),
            length: StepLength::AdaGradNorm { negligible: 0.0 },
        })
    }

    fn batch(&self) -> Batch {
        Batch::Full
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> u64 {
        150
    }
}

/// Learns, and shows what came of it.
pub fn main() -> coirl::Result<()> {
    let model = Driving::default().build()?;
    // Speed is welcome, and the more a driver minds collisions or the road, the less is gained by minding them more.
    let truth = Saturating::new(3, &[1.0, -1.0, -0.6], &[1.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 6.0]);
    let contexts = model.context_space().sample(60, 1)?;
    let plans = coirl::contextual::plan_mapping(&model, &truth, &contexts, ManyOptions::default())?;
    let shown = contexts.into_iter().zip(plans).map(|(context, plan)| {
        Demonstration::from_feature_expectations(&model, context, plan.feature_expectations.unwrap_or_default())
    });
    let problem = Problem::new(&model, &Train::new(shown.collect::<coirl::Result<_>>()?), None)?;
    let examination = Examination::new(&model, &truth, model.context_space().sample(80, 2)?)?;
    let learner = SaturatingDescent::default();
    let watch = Watch { examination: Some(&examination), validation: None };
    let fitted = learn::run(&learner, &problem, &Settings::new(learner.clone()), watch, &mut ())?;
    let (first, last) = (&fitted.history[0], &fitted.history[fitted.history.len() - 1]);
    for (when, record) in [("before", first), ("after", last)] {
        let reached = record.score.map_or(f64::NAN, |score| score.relative_value);
        println!(
            "{when:>6} {:>3} steps: loss {:.4}, {:.3} of the expert's gain over chance in 80 other contexts",
            record.step,
            record.loss.unwrap_or(f64::NAN),
            reached
        );
    }
    let reached = last.score.map_or(0.0, |score| score.relative_value);
    assert!(reached > first.score.map_or(1.0, |score| score.relative_value) && reached > 0.9);
    Ok(())
}
