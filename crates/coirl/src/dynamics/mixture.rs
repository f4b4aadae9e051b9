//! Base kernels of a mixture P_c = Σ cᵢ Pᵢ, by expectation–maximisation.
//!
//! The log-posterior separates into one problem per pair,
//!
//! ```text
//! F(P) = Σ n(c, s') log Σ cᵢ Pᵢ(s') + α Σ_i Σ_s' p₀(s') log Pᵢ(s'),
//! ```
//!
//! which is concave in the rows Pᵢ: logarithms of linear functions over a product of simplices. From an interior point EM
//! therefore climbs to the global maximum. One iteration is
//!
//! ```text
//! r_i(c, s') = cᵢ Pᵢ(s') / Σ_j c_j P_j(s'),        Pᵢ(s') ← (Σ_c n(c, s') r_i(c, s') + α p₀(s')) / (Σ … + α),
//! ```
//!
//! and never lowers F. With the gradient Gᵢ(s') = ∂F/∂Pᵢ(s') concavity also bounds what is missing:
//! max F − F(P) ≤ Σᵢ (max_s' Gᵢ(s') − Σ_s' Pᵢ(s') Gᵢ(s')), which is reported as the gap. A base kernel that no context
//! of a pair gives any weight keeps the prior's row, or the pooled frequencies of the pair at α = 0. Cost of an iteration:
//! distinct (context, pair, next) × d; pairs are worked on side by side, each until it has converged.

use super::counts::TransitionCounts;
use super::likelihood::observed_and_believed;
use super::observations::Observations;
use super::prior::{Prior, Unseen};
use super::support::Support;
use crate::error::{Error, Result};
use crate::model::{Context, ContextSpace, KernelBuilder, Mixture};
use rayon::prelude::*;

/// Pairs whose results are held at a time.
const WAVE: usize = 4096;

/// When EM ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectationMaximisation {
    /// Iterations per pair, at most.
    pub max_iterations: usize,
    /// A pair is done when an iteration gains no more than this much log-posterior per observation of the pair.
    pub tolerance: f64,
}

impl Default for ExpectationMaximisation {
    fn default() -> Self {
        Self { max_iterations: 1000, tolerance: 1e-9 }
    }
}

/// How EM ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaximisedStatus {
    /// Every pair has converged.
    Converged,
    /// So many pairs met the limit of iterations.
    IterationLimit {
        /// Pairs that had not converged.
        pairs: usize,
    },
}

/// What is known about a maximisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Maximised {
    /// Whether every pair has converged.
    pub status: MaximisedStatus,
    /// The log-posterior, up to a constant, before the first iteration and after each; pairs that have converged keep theirs.
    pub log_posterior: Vec<f64>,
    /// The log-posterior is at most this far below the greatest possible.
    pub gap: f64,
}

impl Maximised {
    /// Iterations of the pair that took most.
    pub fn iterations(&self) -> usize {
        self.log_posterior.len().saturating_sub(1)
    }
}

/// The base kernels, one per number of a context, what each rests on and how the maximisation went.
pub(super) fn by_mixture(
    observations: &Observations,
    pooled: &TransitionCounts,
    prior: &Prior,
    settings: ExpectationMaximisation,
) -> Result<(Mixture, Vec<Support>, Maximised)> {
    prior.check(pooled)?;
    check_settings(settings)?;
    let (weights, d) = simplex_weights(observations.contexts())?;
    let pairs = observations.pairs();
    let mut builders: Vec<KernelBuilder> = (0..d).map(|_| KernelBuilder::new(pairs.clone())).collect();
    let mut support = vec![vec![0.0; pairs.len()]; d];
    let (mut log_posterior, mut gap, mut unfinished) = (Vec::new(), 0.0, 0);
    let maximise = |pair: usize| -> Result<PairMaximum> {
        let state = pairs.state(pair).index();
        let mean = prior.of_state(pooled, state);
        let problem = PairProblem::new(observations.row(pair), pooled.row(pair), &mean.of(pair), prior, &weights, d);
        match problem {
            Some(problem) => Ok(problem.maximise(settings)),
            None => Err(Error::PairNeverSeen { state, action: pairs.action(pair).index() }),
        }
    };
    for first in (0..pairs.len()).step_by(WAVE) {
        let wave = first..(first + WAVE).min(pairs.len());
        let maxima = wave.clone().into_par_iter().map(maximise).collect::<Result<Vec<_>>>()?;
        for (pair, maximum) in wave.zip(maxima) {
            for (i, builder) in builders.iter_mut().enumerate() {
                let row = maximum.next.iter().zip(maximum.rows.chunks_exact(d));
                builder.push_row(row.map(|(&next, p)| (i64::from(next), p[i])))?;
                support[i][pair] = maximum.observations[i];
            }
            add_held(&mut log_posterior, &maximum.values);
            gap += maximum.gap;
            unfinished += usize::from(!maximum.converged);
        }
    }
    let kernels = builders.into_iter().map(KernelBuilder::finish).collect::<Result<Vec<_>>>()?;
    let support = support.into_iter().map(|observations| Support::new(pairs.clone(), observations)).collect();
    let status = match unfinished {
        0 => MaximisedStatus::Converged,
        pairs => MaximisedStatus::IterationLimit { pairs },
    };
    Ok((Mixture::new(&kernels)?, support, Maximised { status, log_posterior, gap }))
}

/// Adds two sequences of which each keeps its last value for ever.
fn add_held(sum: &mut Vec<f64>, values: &[f64]) {
    let held = sum.last().copied().unwrap_or(0.0);
    sum.resize(sum.len().max(values.len()), held);
    let last = values.last().copied().unwrap_or(0.0);
    sum.iter_mut().zip(values.iter().copied().chain(std::iter::repeat(last))).for_each(|(x, value)| *x += value);
}

fn check_settings(settings: ExpectationMaximisation) -> Result<()> {
    if settings.max_iterations == 0 {
        let reason = "expected at least 1";
        return Err(Error::InvalidSetting { name: "max_iterations", value: "0".into(), reason });
    }
    if !(settings.tolerance >= 0.0 && settings.tolerance.is_finite()) {
        let reason = "expected a finite number that is not negative";
        return Err(Error::InvalidSetting { name: "tolerance", value: settings.tolerance.to_string(), reason });
    }
    Ok(())
}

/// The contexts one after the other, each divided by its sum as the model divides it, and their length.
fn simplex_weights(contexts: &[Context]) -> Result<(Vec<f64>, usize)> {
    let Some(first) = contexts.first() else {
        return Err(Error::shape("contexts of a mixture", "at least 1", 0));
    };
    let d = first.values().len();
    let space = ContextSpace::Simplex { dimension: d };
    let mut weights = Vec::with_capacity(contexts.len() * d);
    for context in contexts {
        let checked = space.context(context.values()).map_err(|error| match error {
            Error::InvalidContext { values, reason } => {
                let reason = format!("{reason}; the weights of a mixture must, so learn clusters of contexts instead");
                Error::InvalidContext { values, reason }
            }
            other => other,
        })?;
        let total: f64 = checked.values().iter().sum();
        weights.extend(checked.values().iter().map(|x| x / total));
    }
    Ok((weights, d))
}

/// F of one pair.
struct PairProblem<'a> {
    d: usize,
    /// Contexts, `d` weights each.
    weights: &'a [f64],
    /// Successors that can have probability, ascending.
    next: Vec<u32>,
    /// α p₀ of each.
    believed: Vec<f64>,
    /// Context, place in `next`, count.
    entries: Vec<(u32, u32, f64)>,
    /// Pᵢ before the first iteration, one number per successor: the same for every i.
    start: Vec<f64>,
}

/// Where EM ended for one pair.
struct PairMaximum {
    next: Vec<u32>,
    /// `d` probabilities per successor.
    rows: Vec<f64>,
    /// Σ n cᵢ.
    observations: Vec<f64>,
    values: Vec<f64>,
    gap: f64,
    converged: bool,
}

impl<'a> PairProblem<'a> {
    /// Nothing where neither data nor prior say anything.
    fn new(
        seen: &[((u32, u32), u64)],
        pooled: &[(u32, u64)],
        mean: &[(u32, f64)],
        prior: &Prior,
        weights: &'a [f64],
        d: usize,
    ) -> Option<Self> {
        let mut mass = observed_and_believed(pooled, mean, prior.strength);
        if mass.is_empty() {
            match prior.unseen {
                Unseen::Refused => return None,
                Unseen::PriorMean => mass = mean.to_vec(),
            }
        }
        let total: f64 = mass.iter().map(|entry| entry.1).sum();
        let next: Vec<u32> = mass.iter().map(|entry| entry.0).collect();
        let place = |state: u32| next.partition_point(|&s| s < state);
        let mut believed = vec![0.0; next.len()];
        if prior.strength > 0.0 {
            // Shares that vanish have no place.
            let shares = mean.iter().map(|&(s, p)| (s, prior.strength * p)).filter(|entry| entry.1 > 0.0);
            shares.for_each(|(s, share)| believed[place(s)] = share);
        }
        let entries = seen.iter().map(|&((context, s), times)| (context, place(s) as u32, times as f64)).collect();
        let start = mass.iter().map(|entry| entry.1 / total).collect();
        Some(Self { d, weights, believed, entries, start, next })
    }

    fn weights_of(&self, context: u32) -> &[f64] {
        &self.weights[context as usize * self.d..][..self.d]
    }

    fn maximise(self, settings: ExpectationMaximisation) -> PairMaximum {
        let d = self.d;
        let mut rows: Vec<f64> = self.start.iter().flat_map(|&p| std::iter::repeat_n(p, d)).collect();
        let observed: f64 = self.entries.iter().map(|entry| entry.2).sum();
        let mut slopes = vec![0.0; rows.len()];
        let mut values = vec![self.climb(&rows, &mut slopes)];
        let mut converged = false;
        while !converged && values.len() <= settings.max_iterations {
            self.update(&mut rows, &slopes);
            let (value, before) = (self.climb(&rows, &mut slopes), values[values.len() - 1]);
            converged = value - before <= settings.tolerance * observed;
            values.push(value);
        }
        let gap = self.gap(&rows, &slopes);
        let mut observations = vec![0.0; d];
        for &(context, _, times) in &self.entries {
            observations.iter_mut().zip(self.weights_of(context)).for_each(|(sum, c)| *sum += times * c);
        }
        PairMaximum { next: self.next, rows, observations, values, gap, converged }
    }

    /// F(P), and the likelihood's part of its gradient: Σ n cᵢ / Σ_j c_j P_j(s').
    fn climb(&self, rows: &[f64], slopes: &mut [f64]) -> f64 {
        let d = self.d;
        slopes.fill(0.0);
        let mut value = 0.0;
        for &(context, place, times) in &self.entries {
            let (c, at) = (self.weights_of(context), place as usize * d);
            let mixed: f64 = c.iter().zip(&rows[at..at + d]).map(|(c, p)| c * p).sum();
            value += times * mixed.ln();
            slopes[at..at + d].iter_mut().zip(c).for_each(|(slope, c)| *slope += times * c / mixed);
        }
        for (&believed, row) in self.believed.iter().zip(rows.chunks_exact(d)).filter(|entry| *entry.0 > 0.0) {
            value += believed * row.iter().map(|p| p.ln()).sum::<f64>();
        }
        value
    }

    /// Pᵢ ← (Pᵢ slope + α p₀) / Σ: expectation and maximisation in one.
    fn update(&self, rows: &mut [f64], slopes: &[f64]) {
        for i in 0..self.d {
            let mass = |rows: &[f64], at: usize| {
                let entry = at * self.d + i;
                rows[entry] * slopes[entry] + self.believed[at]
            };
            let total: f64 = (0..self.next.len()).map(|at| mass(rows, at)).sum();
            // Without data or prior a base kernel keeps the row it started from.
            if total > 0.0 {
                (0..self.next.len()).for_each(|at| rows[at * self.d + i] = mass(rows, at) / total);
            }
        }
    }

    /// Σᵢ (max_s' Gᵢ(s') − Σ_s' Pᵢ(s') Gᵢ(s')).
    fn gap(&self, rows: &[f64], slopes: &[f64]) -> f64 {
        let of_base = |i: usize| {
            let (mut most, mut held) = (0.0_f64, 0.0);
            for (at, &believed) in self.believed.iter().enumerate() {
                let (p, slope) = (rows[at * self.d + i], slopes[at * self.d + i]);
                most = most.max(if believed > 0.0 { slope + believed / p } else { slope });
                held += p * slope + believed;
            }
            most - held
        };
        // Rounding may leave a maximum a little below its own mean.
        (0..self.d).map(of_base).sum::<f64>().max(0.0)
    }
}
