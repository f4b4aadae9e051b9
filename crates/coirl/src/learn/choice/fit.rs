//! The penalised likelihood of some demonstrations as a function of standardised parameters.

use super::design::{Design, Form};
use super::metric::Metric;
use crate::error::Result;
use crate::model::Context;
use crate::objective::{Choices, Information, Planned, Precision, Term, Warm};
use crate::optim::{Evaluation, Lbfgs, norm};

/// Where ε starts when it is estimated.
const FIRST_LAPSES: f64 = 0.02;
/// What the weights that everybody has are penalised with, beside those that differ between contexts.
const COMMON: f64 = 0.1;
/// Decisions that the prior of ε is worth, and the share of them that are lapses: ε never leaves (0, 1).
const PRIOR_DECISIONS: f64 = 1.0;
const PRIOR_LAPSES: f64 = 0.02;

/// Parameters and features up to which the whole curvature is worth its cost.
const MOST_WHOLE: usize = 300;
const FEW_FEATURES: usize = 16;
/// Contexts whose policies tell the curvature otherwise.
const SAMPLED: usize = 8;
/// Logits of ε that are looked at, and steps of bisection between them.
const LOGITS: [f64; 2] = [-16.0, 3.0];
const BISECTIONS: usize = 40;

/// What is minimised: (−log-likelihood + λ/2 ‖θ‖²) per decision, with the logit of ε as a last parameter where lapses are estimated.
#[derive(Clone, Copy)]
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
    pub(super) effective: f64,
    pub(super) sweeps: usize,
}

impl Likelihood<'_> {
    pub(super) fn n_features(&self) -> usize {
        self.design.feature_scale().len()
    }

    pub(super) fn n_rewards(&self) -> usize {
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

    /// The reward weights of a demonstration.
    fn weights(&self, parameters: &[f64], index: usize) -> Vec<f64> {
        let k = self.n_features();
        let mut own = vec![0.0; k];
        for (x, row) in self.design.inputs(self.contexts[index], self.form).iter().zip(parameters.chunks_exact(k)) {
            own.iter_mut().zip(row).for_each(|(w, p)| *w += x * p);
        }
        own.iter_mut().zip(self.design.feature_scale()).for_each(|(w, scale)| *w /= scale);
        own
    }

    /// The terms of some demonstrations.
    pub(super) fn terms(&self, parameters: &[f64], indices: &[usize]) -> Result<Vec<Term>> {
        let weights: Vec<f64> = indices.iter().flat_map(|&i| self.weights(parameters, i)).collect();
        self.choices.terms(indices, &weights, self.lapses_at(parameters), self.precision, self.warm)
    }

    /// What an input is penalised with.
    fn penalty_of(&self, input: usize) -> f64 {
        if input == 0 { COMMON * self.penalty } else { self.penalty }
    }

    /// First and second derivative by the logit of ε of what is minimised, but for the number of decisions.
    fn by_logit(terms: &[Term], logit: f64) -> [f64; 2] {
        let lapses = 1.0 / (1.0 + (-logit).exp());
        let slope = lapses * (1.0 - lapses);
        let (own, meant) = (PRIOR_DECISIONS * PRIOR_LAPSES, PRIOR_DECISIONS * (1.0 - PRIOR_LAPSES));
        let mut found = [meant * lapses - own * (1.0 - lapses), (own + meant) * slope];
        for [p, by_chance, n] in terms.iter().flat_map(|term| &term.chances) {
            let gain = (by_chance - p) / ((1.0 - lapses) * p + lapses * by_chance);
            found[0] -= n * slope * gain;
            found[1] -= n * slope * gain * (1.0 - 2.0 * lapses - slope * gain);
        }
        found
    }

    /// The parameters with the ε that is best where the rewards are what they are; the terms are those of the parameters. The likelihood is
    /// concave in ε, so that there is one.
    fn with_best_lapses(&self, mut parameters: Vec<f64>, terms: &[Term]) -> Vec<f64> {
        if self.lapses.is_none() {
            let [mut low, mut high] = LOGITS;
            for _ in 0..BISECTIONS {
                let middle = 0.5 * (low + high);
                if Self::by_logit(terms, middle)[0] > 0.0 { high = middle } else { low = middle }
            }
            parameters[self.n_rewards()] = 0.5 * (low + high);
        }
        parameters
    }

    /// What a parameter is penalised with.
    pub(super) fn penalty_at(&self, parameter: usize) -> f64 {
        self.penalty_of(parameter / self.n_features())
    }

    /// Coordinates in which the objective is nearly round around a point whose terms are these.
    pub(super) fn metric(&self, parameters: &[f64], terms: &[Term]) -> Result<Metric> {
        let (p, k) = (self.design.n_inputs(self.form), self.n_features());
        let share = 1.0 / self.decisions();
        let penalties: Vec<f64> = (0..p).map(|input| share * self.penalty_of(input)).collect();
        let by_lapses = match self.lapses {
            None => share * Self::by_logit(terms, parameters[self.n_rewards()])[1],
            Some(_) => 1.0,
        };
        if let Some(whole) = self.curvature(parameters)? {
            return Metric::whole(&whole, by_lapses);
        }
        let mut inputs = vec![0.0; p * p];
        for &i in self.indices {
            let (x, n) = (self.design.inputs(self.contexts[i], self.form), share * self.choices.decisions(i));
            for (row, a) in inputs.chunks_exact_mut(p).zip(&x) {
                row.iter_mut().zip(&x).for_each(|(sum, b)| *sum += n * a * b);
            }
        }
        let n = SAMPLED.min(self.indices.len());
        let sampled: Vec<(usize, Vec<f64>)> = (0..n)
            .map(|at| self.indices[at * self.indices.len() / n])
            .map(|i| (i, self.weights(parameters, i)))
            .collect();
        let (sampled, weights): (Vec<usize>, Vec<Vec<f64>>) = sampled.into_iter().unzip();
        let (indices, weights, lapses) = (&sampled[..], weights.concat(), self.lapses_at(parameters));
        let planned = Planned { indices, weights: &weights, lapses, precision: Precision::Rough, warm: self.warm };
        let mut told = self.choices.curvature(self.indices, &planned)?;
        if let Some(told) = &mut told {
            let scale = self.design.feature_scale();
            told.iter_mut().enumerate().for_each(|(at, x)| *x /= scale[at / k] * scale[at % k]);
        }
        Metric::product(&inputs, told.as_deref(), k, &penalties, by_lapses)
    }

    /// Fisher's information of the decisions, with the penalty and per decision, row by row; nothing where it is not worth its cost.
    pub(super) fn curvature(&self, parameters: &[f64]) -> Result<Option<Vec<f64>>> {
        let n = self.n_rewards();
        if n > MOST_WHOLE || (self.n_features() > FEW_FEATURES && !self.choices.is_small()?) {
            return Ok(None);
        }
        let Some(mut whole) = self.information(parameters, |own| &own.expected)? else { return Ok(None) };
        let share = 1.0 / self.decisions();
        whole.iter_mut().for_each(|x| *x *= share);
        (0..n).for_each(|at| whole[at * n + at] += share * self.penalty_at(at));
        Ok(Some(whole))
    }

    /// Σ x xᵀ ⊗ I over demonstrations, row by row, with I a part of what each tells about the rewards of its context.
    pub(super) fn information(
        &self,
        parameters: &[f64],
        part: impl Fn(&Information) -> &Vec<f64>,
    ) -> Result<Option<Vec<f64>>> {
        let (p, k) = (self.design.n_inputs(self.form), self.n_features());
        let weights: Vec<f64> = self.indices.iter().flat_map(|&i| self.weights(parameters, i)).collect();
        let (precision, lapses) = (self.precision, self.lapses_at(parameters));
        let planned = Planned { indices: self.indices, weights: &weights, lapses, precision, warm: self.warm };
        let Some(found) = self.choices.information(&planned)? else { return Ok(None) };
        let mut sum = vec![0.0; p * k * p * k];
        let scale = self.design.feature_scale();
        for (own, &i) in found.iter().zip(self.indices) {
            let x = self.design.inputs(self.contexts[i], self.form);
            let told: Vec<f64> =
                part(own).iter().enumerate().map(|(at, t)| t / (scale[at / k] * scale[at % k])).collect();
            for (a, xa) in x.iter().enumerate() {
                for f in 0..k {
                    let row = &mut sum[(a * k + f) * p * k..][..p * k];
                    for (b, xb) in x.iter().enumerate() {
                        let share = xa * xb;
                        let told = &told[f * k..(f + 1) * k];
                        row[b * k..(b + 1) * k].iter_mut().zip(told).for_each(|(sum, t)| *sum += share * t);
                    }
                }
            }
        }
        Ok(Some(sum))
    }

    /// The objective as a function of coordinates.
    pub(super) fn evaluate_at(&self, metric: &Metric, coordinates: &[f64]) -> Result<Evaluation<Sums>> {
        let found = self.evaluate(&metric.point(coordinates))?;
        Ok(Evaluation { gradient: metric.gradient(&found.gradient), ..found })
    }

    /// A run from a point, in coordinates of its own.
    pub(super) fn from(&self, start: &[f64]) -> Result<(Metric, Lbfgs)> {
        let terms = self.terms(start, self.indices)?;
        let start = self.with_best_lapses(start.to_vec(), &terms);
        let metric = self.metric(&start, &terms)?;
        let coordinates = metric.coordinates(&start);
        let at = self.evaluate_at(&metric, &coordinates)?;
        Ok((metric, Lbfgs::new(coordinates, at)))
    }

    /// The run in coordinates that fit the point that it has reached.
    pub(super) fn refreshed(&self, metric: &Metric, optimiser: &Lbfgs) -> Result<(Metric, Lbfgs)> {
        let point = metric.point(&optimiser.point);
        let new = self.metric(&point, &self.terms(&point, self.indices)?)?;
        let turned = optimiser
            .turned(|x| new.coordinates(&metric.point(x)), |gradient| new.gradient(&metric.by_point(gradient)));
        Ok((new, turned))
    }

    pub(super) fn evaluate(&self, parameters: &[f64]) -> Result<Evaluation<Sums>> {
        let k = self.n_features();
        let terms = self.terms(parameters, self.indices)?;
        let share = 1.0 / self.decisions();
        let rewards = self.rewards(parameters);
        let mut gradient: Vec<f64> =
            rewards.iter().enumerate().map(|(at, p)| share * self.penalty_at(at) * p).collect();
        let mut sums = Sums::default();
        let mut by_lapses = 0.0;
        for (&i, term) in self.indices.iter().zip(&terms) {
            sums.negative_log_likelihood += term.value;
            sums.agreement += term.agreement;
            sums.effective += term.effective;
            sums.sweeps += term.sweeps;
            by_lapses += term.by_lapses;
            for (x, row) in self.design.inputs(self.contexts[i], self.form).iter().zip(gradient.chunks_exact_mut(k)) {
                for ((sum, g), scale) in row.iter_mut().zip(&term.gradient).zip(self.design.feature_scale()) {
                    *sum += share * x * g / scale;
                }
            }
        }
        let mut value = share * (sums.negative_log_likelihood + self.held_back(parameters));
        if self.lapses.is_none() {
            let lapses = self.lapses_at(parameters);
            let (own, meant) = (PRIOR_DECISIONS * PRIOR_LAPSES, PRIOR_DECISIONS * (1.0 - PRIOR_LAPSES));
            value -= share * self.log_prior_of(lapses);
            gradient.push(share * (by_lapses - own * (1.0 - lapses) + meant * lapses));
        }
        Ok(Evaluation { value, gradient, remark: sums })
    }

    /// λ/2 ‖θ‖².
    fn held_back(&self, parameters: &[f64]) -> f64 {
        0.5 * self.rewards(parameters).iter().enumerate().map(|(at, p)| self.penalty_at(at) * p * p).sum::<f64>()
    }

    /// The log of the prior of ε, but for a constant.
    fn log_prior_of(&self, lapses: f64) -> f64 {
        let (own, meant) = (PRIOR_DECISIONS * PRIOR_LAPSES, PRIOR_DECISIONS * (1.0 - PRIOR_LAPSES));
        own * lapses.ln() + meant * (1.0 - lapses).ln()
    }

    /// From a point to where a Newton step would gain next to nothing, in so many steps at most: half of the squared tolerance per decision.
    pub(super) fn minimise(&self, start: &[f64], steps: usize, tolerance: f64) -> Result<Vec<f64>> {
        let (metric, mut optimiser) = self.from(start)?;
        for _ in 0..steps {
            let done = norm(&optimiser.gradient) <= tolerance;
            if done || optimiser.step(|coordinates| self.evaluate_at(&metric, coordinates))?.is_none() {
                break;
            }
        }
        Ok(metric.point(&optimiser.point))
    }

    /// From no reward at all: without lapses first, because to somebody whose every action is a lapse all rewards are alike, and that is
    /// a minimum too.
    pub(super) fn minimise_from_nothing(&self, steps: usize, tolerance: f64) -> Result<Vec<f64>> {
        let first = self.first();
        let Some(logit) = first.get(self.n_rewards()).copied() else { return self.minimise(&first, steps, tolerance) };
        let fixed = Likelihood { lapses: Some(0.0), ..*self };
        let mut start = fixed.minimise(&first[..self.n_rewards()], steps, tolerance)?;
        start.push(logit);
        self.minimise(&start, steps, tolerance)
    }
}
