//! What theorems promise, and what happens: the bound that a run's certificate states beside what it bounds, by the number of contexts, steps or
//! questions. Methods that ask an expert are bounded in their mistakes, the others in their loss, and transfer by policy improvement in the value
//! that it loses in any state.

use super::{Run, Told};
use crate::curves::Curve;
use crate::experiment::Entrant;
use crate::world::{Place, Seen, Subject, World};
use coirl::Result;
use coirl::demos::SimulatedExpert;
use coirl::learn::{Problem, Watch};
use coirl::methods::{Method, fit};
use coirl::model::Context;
use coirl::transfer::Transfer;
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
    /// New contexts that policies are transferred to from the true mapping's, none for no transfer.
    #[serde(default)]
    pub transfer_to: usize,
}

/// What transfer is called among the methods.
const TRANSFER: &str = "policy improvement, value lost";

impl Guarantees {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        let world = run.world(self.place)?;
        let model = world.model();
        let most = self.contexts.iter().copied().max().unwrap_or(0);
        let subjects = run.subjects(&world, most)?;
        let tolerance = self.tolerance * model.n_features() as f64 / (1.0 - model.criterion().discount());
        let expert = SimulatedExpert::new(model, world.linear_truth()?.clone(), tolerance, run.seed)?;
        let mut curves = run.each(methods, |entrant| {
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
                    Problem::new(model, &train, entrant.estimator().as_ref())?
                };
                let mut settings = entrant.settings(problem.len(), run.seed);
                settings.record_loss = Some(!asks);
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
        })?;
        curves.extend(self.transfer(&world, &subjects, run)?);
        Ok(curves)
    }

    /// The largest loss of transferred policies beside its bound, in the context where it comes nearest to it.
    fn transfer(&self, world: &World, known: &[Subject], run: &Run<'_>) -> Result<Vec<Curve>> {
        if self.transfer_to == 0 {
            return Ok(Vec::new());
        }
        let new = world.test_subjects(self.transfer_to, run.seed)?;
        let (mut measured, mut bounds, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for &n in &self.contexts {
            let contexts: Vec<Context> = known[..n].iter().map(|subject| subject.context.clone()).collect();
            let mut transfer = Transfer::new(world.model(), world.linear_truth()?.clone())?;
            transfer.learn(&contexts)?;
            let mut worst = (0.0, f64::INFINITY);
            for Subject { context, .. } in &new {
                let found = transfer.transfer(context, None)?;
                let lost = transfer.realised_gap(context, &found.values)?.largest;
                let bound = transfer.bound(context)?.bound;
                if lost / bound >= worst.0 / worst.1 {
                    worst = (lost, bound);
                }
            }
            measured.push((n as f64, worst.0));
            bounds.push((n as f64, worst.1));
            shares.push((n as f64, worst.0 / worst.1));
            run.tell(TRANSFER, shares.len() as f64 / self.contexts.len() as f64)?;
        }
        Ok(vec![
            Curve::new(TRANSFER, "measured", measured),
            Curve::new(TRANSFER, "bound", bounds),
            Curve::new(TRANSFER, "share of the bound", shares),
        ])
    }
}
