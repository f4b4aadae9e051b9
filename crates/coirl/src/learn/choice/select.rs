//! Which form the reward has and how strongly it is held back, by the likelihood of demonstrations that were left out.
//!
//! For a linear mapping penalties are tried by tens, from one in the middle towards where held-out demonstrations are likelier, on the
//! same folds and each from where the last one ended. One reward for everybody and a network are then fitted on the same folds. The
//! simplest form whose held-out likelihood is within one standard error of the best (of the differences, demonstration by
//! demonstration) is taken.

use super::design::{Design, Form};
use super::fit::Likelihood;
use crate::error::Result;
use crate::model::Context;
use crate::objective::{Choices, Precision, Term};
use crate::random::stream;
use rand::seq::SliceRandom;
use rayon::prelude::*;

/// The penalty that is tried first, and the least and the largest.
const FIRST: i32 = 0;
const FIRST_EXACT: i32 = -4;
const LEAST: i32 = -7;
const LARGEST: i32 = 2;
/// A gain in held-out log-likelihood, per decision, that is worth another penalty.
const WORTH: f64 = 1e-3;
/// The penalty where nothing can be left out.
pub(super) const WITHOUT_FOLDS: f64 = 1e-2;
/// Steps and gradient at which a fit on a fold ends: 5e-5 per decision could still be gained.
const STEPS: usize = 12;
const TOLERANCE: f64 = 1e-2;
/// Demonstrations that take part at most.
pub(super) const MOST_COMPARED: usize = 120;
/// Demonstrations from which on three folds are enough.
const MANY: usize = 60;
/// Demonstrations without which no network is tried.
pub(super) const FEWEST_FOR_NETWORK: usize = 40;

/// A form with a penalty, and what it says of demonstrations that were left out.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What f depends on.
    pub form: Form,
    /// λ.
    pub penalty: f64,
    /// Mean log-likelihood of a decision that was left out.
    pub log_likelihood: f64,
    /// Its standard error, by demonstration.
    pub standard_error: f64,
    /// Share of the decisions that were left out for which the likeliest action was taken.
    pub accuracy: f64,
    /// Number of parameters.
    pub parameters: usize,
    /// The mean of the parameters of the folds, to start the fit on all demonstrations from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) start: Vec<f64>,
    /// −log-likelihood of each demonstration that took part, as left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) each: Vec<f64>,
}

impl Candidate {
    /// What is told of it: not where its fits ended.
    pub(super) fn told(&self) -> Self {
        Self { start: Vec::new(), each: Vec::new(), ..self.clone() }
    }
}

/// The folds of a comparison.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Folds {
    /// Demonstrations that take part, fold by fold.
    folds: Vec<Vec<usize>>,
    /// Where the last fit on each fold ended.
    last: Vec<Vec<f64>>,
}

impl Folds {
    /// Nothing where there are too few demonstrations to leave some out.
    pub(super) fn new(n: usize, folds: usize, seed: u64) -> Option<Self> {
        let folds = if n >= MANY { 3 } else { folds.min(n) };
        if folds < 3 {
            return None;
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut stream(seed, "folds of the choice model", 0));
        order.truncate(MOST_COMPARED.max(folds));
        let mut parts = vec![Vec::new(); folds];
        order.into_iter().enumerate().for_each(|(at, i)| parts[at % folds].push(i));
        parts.iter_mut().for_each(|part| part.sort_unstable());
        Some(Self { folds: parts, last: Vec::new() })
    }

    /// Number of demonstrations that take part.
    pub(super) fn n(&self) -> usize {
        self.folds.iter().map(Vec::len).sum()
    }

    /// Number of folds.
    pub(super) fn len(&self) -> usize {
        self.folds.len()
    }

    /// The mean of the parameters that the last comparison ended with.
    fn mean(&self) -> Vec<f64> {
        let n = self.last.len().max(1) as f64;
        let mut mean = vec![0.0; self.last.first().map_or(0, Vec::len)];
        for last in &self.last {
            mean.iter_mut().zip(last).for_each(|(sum, x)| *sum += x / n);
        }
        mean
    }

    /// Whether these folds are of so many demonstrations.
    pub(super) fn fits(&self, n: usize) -> bool {
        self.folds.iter().flatten().all(|&i| i < n)
    }

    /// Fits on all folds but one, for each, and looks at the one.
    pub(super) fn compare(
        &mut self,
        choices: &Choices,
        design: &Design,
        contexts: &[&Context],
        form: Form,
        penalty: f64,
        lapses: Option<f64>,
    ) -> Result<Candidate> {
        let of_fold = |out: usize| -> Result<(Vec<f64>, Vec<Term>)> {
            let kept: Vec<usize> =
                (0..self.folds.len()).filter(|&f| f != out).flat_map(|f| self.folds[f].iter().copied()).collect();
            let warm = choices.warm();
            let likelihood = Likelihood {
                choices,
                design,
                contexts,
                form,
                penalty,
                lapses,
                indices: &kept,
                precision: Precision::Rough,
                warm: warm.as_ref(),
            };
            let fitted = match self.last.get(out).map(|last| likelihood.started(last)) {
                Some(start) => likelihood.minimise(&start, STEPS, TOLERANCE)?,
                None => likelihood.minimise_from_nothing(STEPS, TOLERANCE)?,
            };
            let terms = likelihood.terms(&fitted, &self.folds[out])?;
            Ok((fitted, terms))
        };
        let found: Vec<(Vec<f64>, Vec<Term>)> =
            (0..self.folds.len()).into_par_iter().map(of_fold).collect::<Result<_>>()?;
        let (mut each, mut decisions, mut agreement) = (Vec::new(), Vec::new(), 0.0);
        for ((_, terms), own) in found.iter().zip(&self.folds) {
            for (term, &i) in terms.iter().zip(own) {
                each.push(term.value);
                decisions.push(choices.decisions(i));
                agreement += term.agreement;
            }
        }
        let parameters = found[0].0.len();
        self.last = found.into_iter().map(|fold| fold.0).collect();
        let total: f64 = decisions.iter().sum::<f64>().max(1.0);
        let mean = each.iter().sum::<f64>() / total;
        let deviations: Vec<f64> = each.iter().zip(&decisions).map(|(value, n)| value - n * mean).collect();
        Ok(Candidate {
            form,
            penalty,
            log_likelihood: -mean,
            standard_error: standard_error(&deviations) / total,
            accuracy: agreement / total,
            parameters,
            start: self.mean(),
            each,
        })
    }
}

/// The standard error of a sum.
fn standard_error(each: &[f64]) -> f64 {
    let n = each.len() as f64;
    if each.len() < 2 {
        return 0.0;
    }
    let mean = each.iter().sum::<f64>() / n;
    (each.iter().map(|x| (x - mean).powi(2)).sum::<f64>() * n / (n - 1.0)).sqrt()
}

/// The next penalty for a form: one step of ten beyond the best so far, in the direction that is not yet known to be worse.
pub(super) fn next_penalty(candidates: &[Candidate], form: Form, from_actions: bool) -> Option<f64> {
    // Feature expectations are not noisy: little has to be held back, and every gain counts.
    let (first, worth) = if from_actions { (FIRST, WORTH) } else { (FIRST_EXACT, 0.0) };
    let power = |penalty: f64| penalty.log10().round() as i32;
    let Some(best) = best_of(candidates, form) else { return Some(10_f64.powi(first)) };
    let at = |wanted: i32| candidates.iter().find(|own| own.form == form && power(own.penalty) == wanted);
    let own = power(best.penalty);
    // Towards less penalty only while it gains something: where nothing is gained the stronger one is as good.
    let gained = at(own + 1).is_none_or(|last| best.log_likelihood - last.log_likelihood > worth);
    let weaker = (own > LEAST && at(own - 1).is_none() && gained).then_some(own - 1);
    let stronger = (own < LARGEST && at(own + 1).is_none()).then_some(own + 1);
    weaker.or(stronger).map(|power| 10_f64.powi(power))
}

/// The best of the candidates of a form.
pub(super) fn best_of(candidates: &[Candidate], form: Form) -> Option<&Candidate> {
    let of_form = candidates.iter().filter(|candidate| candidate.form == form);
    of_form.fold(None, |best: Option<&Candidate>, new| match best {
        Some(best) if best.log_likelihood >= new.log_likelihood => Some(best),
        _ => Some(new),
    })
}

/// The simplest form within one standard error of the best.
pub(super) fn simplest(candidates: &[Candidate]) -> Option<&Candidate> {
    let forms = [Form::Constant, Form::Linear, Form::Network].map(|form| best_of(candidates, form));
    let best = forms.iter().flatten().fold(None, |best: Option<&Candidate>, new| match best {
        Some(best) if best.log_likelihood >= new.log_likelihood => Some(best),
        _ => Some(new),
    })?;
    forms.into_iter().flatten().find(|candidate| {
        let differences: Vec<f64> = candidate.each.iter().zip(&best.each).map(|(own, best)| own - best).collect();
        candidate.form == best.form || differences.iter().sum::<f64>() <= standard_error(&differences)
    })
}
