//! Which form the reward has and how strongly it is held back, by the likelihood of demonstrations that were left out.
//!
//! A linear mapping with a penalty of one stands until something is better by more than two standard errors of the differences,
//! demonstration by demonstration: of few demonstrations the best of many candidates is the luckiest. Penalties are tried by tens, first
//! weaker, then stronger ones, on the same folds and each from where the last one ended; then one reward for everybody and a network.

use super::design::{Design, Form};
use super::fit::Likelihood;
use crate::error::Result;
use crate::model::Context;
use crate::objective::{Choices, Precision, Term};
use crate::random::stream;
use rand::seq::SliceRandom;
use rayon::prelude::*;

/// Powers of ten: the penalty that is tried first, the least and the largest.
const FIRST: i32 = 0;
const LEAST: i32 = -6;
const LARGEST: i32 = 2;
/// The first and the least where feature expectations are exact: with a weaker one rewards bend towards how experts break their ties.
const EXACT: i32 = -3;
/// The power of ten of the penalty where no demonstration can be held out.
const WITHOUT_FOLDS: i32 = -2;
/// Steps and gradient at which a fit on a fold ends: 5e-5 per decision could still be gained.
const STEPS: usize = 12;
const TOLERANCE: f64 = 1e-2;
/// Standard errors by which a candidate has to be better than the one that stands.
const SURE: f64 = 2.0;
/// Demonstrations that take part at most: two thirds and one third of them fill blocks of plans.
pub(super) const MOST_COMPARED: usize = 96;
/// Demonstrations that take part at most where feature expectations are exact.
const MOST_EXACT: usize = 48;
/// Demonstrations from which on three folds are enough.
const MANY: usize = 60;
/// Demonstrations up to which there are twice as many folds, so that fits on them miss little.
const FEW: usize = 40;
/// Demonstrations without which no network is tried.
const FEWEST_FOR_NETWORK: usize = 40;

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
    /// Whether it is the one that stands of its form.
    #[serde(default)]
    pub stands: bool,
    /// The mean of the parameters of the folds, to start the fit on all demonstrations from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) start: Vec<f64>,
    /// −log-likelihood of each demonstration that took part, as left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) each: Vec<f64>,
}

impl Candidate {
    /// Whether left-out demonstrations are likelier by more than two standard errors of the difference.
    fn is_better_than(&self, other: &Self) -> bool {
        let gains: Vec<f64> = other.each.iter().zip(&self.each).map(|(other, own)| other - own).collect();
        gains.iter().sum::<f64>() > SURE * standard_error(&gains)
    }

    /// What is told of it beside others: not where its fits ended.
    pub(super) fn told(&self, all: &[Self]) -> Self {
        let stands = best_of(all, self.form).is_some_and(|best| best.penalty == self.penalty);
        Self { start: Vec::new(), each: Vec::new(), stands, ..self.clone() }
    }
}

/// The folds of a comparison.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Folds {
    /// Demonstrations that take part, fold by fold.
    folds: Vec<Vec<usize>>,
    /// Whether these are pieces of demonstrations, which are too few themselves.
    pieces: bool,
    /// Where the last fit on each fold ended.
    last: Vec<Vec<f64>>,
}

impl Folds {
    /// Of demonstrations, or of pieces of them; nothing where there are too few to leave some out.
    pub(super) fn new(n: usize, pieces: bool, folds: usize, noisy: bool, seed: u64) -> Option<Self> {
        let folds = match n {
            _ if !noisy => folds.min(n).min(3),
            MANY.. => 3,
            0..=FEW => (2 * folds).min(n),
            _ => folds.min(n),
        };
        if folds < 3 {
            return None;
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut stream(seed, "folds of the choice model", 0));
        let most = if noisy { MOST_COMPARED } else { MOST_EXACT };
        order.truncate(most.max(folds));
        let mut parts = vec![Vec::new(); folds];
        order.into_iter().enumerate().for_each(|(at, i)| parts[at % folds].push(i));
        parts.iter_mut().for_each(|part| part.sort_unstable());
        Some(Self { folds: parts, pieces, last: Vec::new() })
    }

    /// Number of demonstrations that take part.
    pub(super) fn n(&self) -> usize {
        self.folds.iter().map(Vec::len).sum()
    }

    /// Whether a network may be compared.
    pub(super) fn bear_network(&self) -> bool {
        !self.pieces && self.n() >= FEWEST_FOR_NETWORK
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
                precision: if choices.is_noisy() { Precision::Rough } else { Precision::Full },
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
            stands: false,
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

/// The next penalty for a form: ten times weaker than the best while that is better, else ten times stronger while that is.
pub(super) fn next_penalty(candidates: &[Candidate], form: Form, noisy: bool) -> Option<f64> {
    let (first, least) = if noisy { (FIRST, LEAST) } else { (EXACT, EXACT) };
    let power = |penalty: f64| penalty.log10().round() as i32;
    let Some(best) = best_of(candidates, form) else { return Some(10_f64.powi(first)) };
    let tried = |wanted: i32| candidates.iter().any(|own| own.form == form && power(own.penalty) == wanted);
    let own = power(best.penalty);
    let next = [(own > least, own - 1), (own < LARGEST, own + 1)];
    next.into_iter().find(|&(inside, power)| inside && !tried(power)).map(|(_, power)| 10_f64.powi(power))
}

/// The penalty where nothing can be left out.
pub(super) fn penalty_without_folds(noisy: bool) -> f64 {
    10_f64.powi(if noisy { WITHOUT_FOLDS } else { EXACT })
}

/// The candidate of a form that stands: the first, until another is better.
pub(super) fn best_of(candidates: &[Candidate], form: Form) -> Option<&Candidate> {
    standing(candidates.iter().filter(|candidate| candidate.form == form))
}

/// Of the best of every form the one that stands; the first form is the one whose penalties were compared. A network takes part where
/// its units were asked for: they were chosen by the demonstrations that it is compared on.
pub(super) fn chosen(candidates: &[Candidate], asked_for: bool) -> Option<&Candidate> {
    let first = candidates.first()?.form;
    let forms = [Form::Constant, Form::Linear, Form::Network].into_iter();
    let others = forms.filter(|&form| form != first && (form != Form::Network || asked_for));
    standing(std::iter::once(first).chain(others).filter_map(|form| best_of(candidates, form)))
}

fn standing<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> Option<&'c Candidate> {
    candidates.fold(None, |best: Option<&Candidate>, new| match best {
        Some(best) if !new.is_better_than(best) => Some(best),
        _ => Some(new),
    })
}
