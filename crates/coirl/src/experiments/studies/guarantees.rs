//! What theorems promise, and what happens: the bound that a run's certificate states beside what it bounds, by the number of contexts, steps or
//! questions. Methods that ask an expert are bounded in their mistakes, the others in their loss.

use super::{Run, Told};
use crate::demos::SimulatedExpert;
use crate::error::Result;
use crate::experiments::curves::Curve;
use crate::experiments::experiment::Entrant;
use crate::experiments::world::{Place, Seen};
use crate::learn::{Method, Problem, Watch, fit};
use crate::model::Context;
use serde::{Deserialize, Serialize};

/// Settings of a study of guarantees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantees {
    /// Where.
    pub place: Place,
    /// Numbers of contexts: those that come, for methods that ask; those that are learned from, for the others.
    pub contexts: Vec<usize>,
    /// What the expert lets pass, of the value scaled by (1 − γ)/k.
    pub tolerance: f64,
}

impl Guarantees {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        let world = run.world(self.place)?;
        let model = world.model();
        let most = self.contexts.iter().copied().max().unwrap_or(0);
        let subjects = run.subjects(&world, most)?;
        let tolerance = self.tolerance * model.n_features() as f64 / (1.0 - model.criterion().discount());
        let expert = SimulatedExpert::new(model, world.linear_truth()?.clone(), tolerance, run.seed)?;
        run.each(methods, |entrant| {
            let (mut measured, mut bounds, mut shares) = (Vec::new(), Vec::new(), Vec::new());
            for &n in &self.contexts {
                let asks = matches!(
                    entrant.learner,
                    Method::Ellipsoid(_) | Method::BatchEllipsoid(_) | Method::CuttingPlane(_)
                );
                let train = world.demonstrations(&subjects[..n], Seen::FeatureExpectations, run.seed)?;
                let problem = if asks {
                    let contexts: Vec<Context> = subjects[..n].iter().map(|subject| subject.context.clone()).collect();
                    Problem::interactive(model, contexts, &expert)?
                } else {
                    Problem::new(model, &train, &entrant.estimator)?
                };
                let mut settings = entrant.settings(problem.len(), run.seed);
                settings.record_loss = !asks;
                settings.initial = run.initial();
                let steps = settings.stop.max_steps.unwrap_or(n as u64);
                let mut told = Told { run, method: &entrant.name, steps };
                let fitted = fit(&problem, &settings, Watch::default(), &mut told)?;
                let certificate = &fitted.certificate;
                let happened = if asks { Some(fitted.demonstrations as f64) } else { certificate.unnormalised_loss };
                if let (Some(happened), Some(bound)) = (happened, certificate.bound) {
                    measured.push((n as f64, happened));
                    bounds.push((n as f64, bound));
                    shares.push((n as f64, happened / bound));
                }
            }
            Ok(vec![
                Curve::new(&entrant.name, "measured", measured),
                Curve::new(&entrant.name, "bound", bounds),
                Curve::new(&entrant.name, "share of the bound", shares),
            ])
        })
    }
}
