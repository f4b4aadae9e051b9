//! The penalised likelihood of some demonstrations as a function of standardised parameters.

use super::design::{Design, Form};
use crate::error::Result;
use crate::model::Context;
use crate::objective::{Choices, Precision, Term, Warm};
use crate::optim::{Evaluation, Lbfgs, norm_inf};

/// Where ε starts when it is estimated.
const FIRST_LAPSES: f64 = 0.02;
/// What the weights that everybody has are penalised with, beside those that differ between contexts.
const COMMON: f64 = 0.2;
/// Decisions that the prior of ε is worth, and the share of them that are lapses: ε never leaves (0, 1).
const PRIOR_DECISIONS: f64 = 1.0;
const PRIOR_LAPSES: f64 = 0.02;

/// What is minimised: (−log-likelihood + λ/2 ‖θ‖²) per decision, with the logit of ε as a last parameter where lapses are estimated.
pub(super) struct Likelihood<'f> {
    pub(super) choices: &'f Choices,
    pub(super) design: &'f Design,
    /// The context of each demonstration of the choices.
    pub(super) contexts: &'f [&'f Context],
    pub(super) form: Form,
    pub(super) penalty: f64,
    /// ε where it is fixed; estimated otherwise.
    pub(super) lapses: Option<f64>,
    pub(super) indices: &'f [usize],
    pub(super) precision: Precision,
    pub(super) warm: Option<&'f Warm>,
}

/// Sums over demonstrations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) negative_log_likelihood: f64,
    pub(super) agreement: f64,
    pub(super) sweeps: usize,
}

impl Likelihood<'_> {
    fn n_features(&self) -> usize {
        self.design.feature_scale().len()
    }

    fn n_rewards(&self) -> usize {
        self.design.n_inputs(self.form) * self.n_features()
    }

    pub(super) fn n_parameters(&self) -> usize {
        self.n_rewards() + usize::from(self.lapses.is_none())
    }

    /// No reward at all, and few lapses.
    pub(super) fn first(&self) -> Vec<f64> {
        let mut first = vec![0.0; self.n_rewards()];
        first.extend(self.lapses.is_none().then_some((FIRST_LAPSES / (1.0 - FIRST_LAPSES)).ln()));
        first
    }

    /// Parameters of another form as those of this one: what is missing is zero, what is not used is left out.
    pub(super) fn started(&self, other: &[f64]) -> Vec<f64> {
        let own = other.len() - usize::from(self.lapses.is_none());
        let mut parameters = other[..own].to_vec();
        parameters.resize(self.n_rewards(), 0.0);
        parameters.extend(&other[own..]);
        parameters
    }

    /// ε at a point.
    pub(super) fn lapses_at(&self, parameters: &[f64]) -> f64 {
        self.lapses.unwrap_or_else(|| 1.0 / (1.0 + (-parameters[self.n_rewards()]).exp()))
    }

    /// The rewards among the parameters.
    pub(super) fn rewards<'p>(&self, parameters: &'p [f64]) -> &'p [f64] {
        &parameters[..self.n_rewards()]
    }

    pub(super) fn decisions(&self) -> f64 {
        self.indices.iter().map(|&i| self.choices.decisions(i)).sum::<f64>().max(1.0)
    }

    /// The terms of some demonstrations.
    pub(super) fn terms(&self, parameters: &[f64], indices: &[usize]) -> Result<Vec<Term>> {
        let k = self.n_features();
        let mut weights = Vec::with_capacity(indices.len() * k);
        for &i in indices {
            let mut own = vec![0.0; k];
            for (x, row) in self.design.inputs(self.contexts[i], self.form).iter().zip(parameters.chunks_exact(k)) {
                own.iter_mut().zip(row).for_each(|(w, p)| *w += x * p);
            }
            weights.extend(own.iter().zip(self.design.feature_scale()).map(|(w, scale)| w / scale));
        }
        self.choices.terms(indices, &weights, self.lapses_at(parameters), self.precision, self.warm)
    }

    pub(super) fn evaluate(&self, parameters: &[f64]) -> Result<Evaluation<Sums>> {
        let k = self.n_features();
        let terms = self.terms(parameters, self.indices)?;
        let share = 1.0 / self.decisions();
        let rewards = self.rewards(parameters);
        let penalty = |at: usize| if at < k { COMMON * self.penalty } else { self.penalty };
        let mut gradient: Vec<f64> = rewards.iter().enumerate().map(|(at, p)| share * penalty(at) * p).collect();
        let held_back: f64 = 0.5 * rewards.iter().enumerate().map(|(at, p)| penalty(at) * p * p).sum::<f64>();
        let mut sums = Sums::default();
        let mut by_lapses = 0.0;
        for (&i, term) in self.indices.iter().zip(&terms) {
            sums.negative_log_likelihood += term.value;
            sums.agreement += term.agreement;
            sums.sweeps += term.sweeps;
            by_lapses += term.by_lapses;
            for (x, row) in self.design.inputs(self.contexts[i], self.form).iter().zip(gradient.chunks_exact_mut(k)) {
                for ((sum, g), scale) in row.iter_mut().zip(&term.gradient).zip(self.design.feature_scale()) {
                    *sum += share * x * g / scale;
                }
            }
        }
        let mut value = share * (sums.negative_log_likelihood + held_back);
        if self.lapses.is_none() {
            let lapses = self.lapses_at(parameters);
            let (own, meant) = (PRIOR_DECISIONS * PRIOR_LAPSES, PRIOR_DECISIONS * (1.0 - PRIOR_LAPSES));
            value -= share * (own * lapses.ln() + meant * (1.0 - lapses).ln());
            gradient.push(share * (by_lapses - own * (1.0 - lapses) + meant * lapses));
        }
        Ok(Evaluation { value, gradient, remark: sums })
    }

    /// From a point to where the gradient has vanished, in so many steps at most.
    pub(super) fn minimise(&self, start: Vec<f64>, steps: usize, tolerance: f64) -> Result<Lbfgs> {
        let at = self.evaluate(&start)?;
        let mut optimiser = Lbfgs::new(start, at);
        for _ in 0..steps {
            if norm_inf(&optimiser.gradient) <= tolerance || optimiser.step(|p| self.evaluate(p))?.is_none() {
                break;
            }
        }
        Ok(optimiser)
    }

    /// From no reward at all to where the gradient has vanished: without lapses first, because to somebody whose every action is a lapse
    /// all rewards are alike, and that is a minimum too.
    pub(super) fn minimise_from_nothing(&self, steps: usize, tolerance: f64) -> Result<Lbfgs> {
        let first = self.first();
        let Some(logit) = first.get(self.n_rewards()).copied() else { return self.minimise(first, steps, tolerance) };
        let fixed = Likelihood { lapses: Some(0.0), ..*self };
        let mut start = fixed.minimise(first[..self.n_rewards()].to_vec(), steps, 10.0 * tolerance)?.point;
        start.push(logit);
        self.minimise(start, steps, tolerance)
    }
}
