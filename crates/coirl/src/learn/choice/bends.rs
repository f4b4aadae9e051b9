//! Which hidden units the network has: one after the other, each where the demonstrations ask for it most.
//!
//! At a fit without the unit, let g_i be the gradient of demonstration i by the reward weights of its context, u the unit's values,
//! standardised and free of what the inputs so far can say, and G = Σ g_i g_iᵀ, which is near the information. Then
//!
//! ```text
//! gain(u) = sᵀ (G + λ)⁻¹ s,     s = Σ u_i g_i
//! ```
//!
//! is twice what a Newton step in the weights of u would gain: Rao's score test. Without any effect it is near a χ² with
//! d = tr G (G + λ)⁻¹ degrees of freedom, and the largest of m units is above d + 2√(dL) + 2L, L = ln m + 3, with a probability of
//! e⁻³ at most (Laurent and Massart, 2000). Units beyond that are added. The first one is in any case, so that there is a network to
//! compare, but one that was not asked for is never taken.

use super::design::{Design, Form, Unit};
use super::fit::Likelihood;
use super::metric::eigen;
use crate::error::Result;
use crate::objective::Term;
use crate::optim::{dot, norm};
use rayon::prelude::*;

/// Hidden units at most.
const MOST: usize = 6;
/// −log of the probability to add a unit that has no effect.
const CONFIDENCE: f64 = 3.0;
/// Features beyond which only the diagonal of G is used.
const MOST_WHOLE: usize = 300;
/// Shares of the information below which a direction is not told about.
const LEAST: f64 = 1e-9;
/// Units that keep less than this share of their size beside the inputs say nothing new.
const NEW: f64 = 1e-3;

/// The units of the network, from where a linear fit has ended.
pub(super) fn grow(linear: &Likelihood<'_>, end: &[f64], steps: usize, tolerance: f64) -> Result<Design> {
    let (mut design, mut point) = (linear.design.clone(), end.to_vec());
    let pool = design.pool(linear.contexts);
    for round in 0..MOST {
        let network = Likelihood { design: &design, form: Form::Network, ..*linear };
        point = network.started(&point);
        if round > 0 {
            point = network.minimise(&point, steps, tolerance)?;
        }
        let terms = network.terms(&point, network.indices)?;
        let Some(asked) = most_asked_for(&network, &terms, &pool)? else { break };
        let sure = asked.gain > asked.by_luck;
        if round == 0 || sure {
            design.add(pool[asked.unit].clone(), sure);
        }
        if !sure {
            break;
        }
    }
    Ok(design)
}

struct Asked {
    unit: usize,
    gain: f64,
    /// What the largest gain of units without an effect seldom reaches.
    by_luck: f64,
}

/// The unit with the largest gain; nothing where no unit says more than the inputs do.
fn most_asked_for(network: &Likelihood<'_>, terms: &[Term], pool: &[Unit]) -> Result<Option<Asked>> {
    let scale = network.design.feature_scale();
    let gradients: Vec<Vec<f64>> =
        terms.iter().map(|term| term.gradient.iter().zip(scale).map(|(g, scale)| g / scale).collect()).collect();
    let rows: Vec<Vec<f64>> =
        network.indices.iter().map(|&i| network.design.inputs(network.contexts[i], Form::Network)).collect();
    let told = Information::of(&gradients, scale.len(), network.penalty)?;
    let known = orthonormal(&rows);
    let gain = |unit: &Unit| -> Option<f64> {
        let mut values: Vec<f64> = rows.iter().map(|row| unit.of_inputs(row)).collect();
        let size = norm(&values);
        known.iter().for_each(|column| subtract(&mut values, column));
        let left = norm(&values);
        (left > NEW * size).then(|| {
            let unit = (values.len() as f64).sqrt() / left;
            let mut sum = vec![0.0; scale.len()];
            for (value, own) in values.iter().zip(&gradients) {
                sum.iter_mut().zip(own).for_each(|(s, g)| *s += unit * value * g);
            }
            told.gain(&sum)
        })
    };
    let gains: Vec<Option<f64>> = pool.par_iter().map(gain).collect();
    let found = gains.iter().enumerate().filter_map(|(at, gain)| gain.map(|gain| (at, gain)));
    let tried = gains.iter().flatten().count();
    let best = found.fold(None, |best: Option<(usize, f64)>, new| match best {
        Some(best) if best.1 >= new.1 => Some(best),
        _ => Some(new),
    });
    let (degrees, luck) = (told.degrees(), (tried.max(1) as f64).ln() + CONFIDENCE);
    let by_luck = degrees + 2.0 * (degrees * luck).sqrt() + 2.0 * luck;
    Ok(best.map(|(unit, gain)| Asked { unit, gain, by_luck }))
}

/// G in its eigenvectors, and λ.
struct Information {
    /// Nothing for the axes.
    vectors: Option<Vec<Vec<f64>>>,
    values: Vec<f64>,
    penalty: f64,
}

impl Information {
    fn of(gradients: &[Vec<f64>], k: usize, penalty: f64) -> Result<Self> {
        let (values, vectors) = if k > MOST_WHOLE {
            let mut diagonal = vec![0.0; k];
            gradients.iter().for_each(|own| diagonal.iter_mut().zip(own).for_each(|(sum, g)| *sum += g * g));
            (diagonal, None)
        } else {
            let mut whole = vec![0.0; k * k];
            for own in gradients {
                for (row, g) in whole.chunks_exact_mut(k).zip(own) {
                    row.iter_mut().zip(own).for_each(|(sum, h)| *sum += g * h);
                }
            }
            let (values, vectors) = eigen(&whole)?;
            (values, Some(vectors))
        };
        Ok(Self { vectors, values, penalty })
    }

    fn least(&self) -> f64 {
        LEAST * self.values.iter().fold(0.0, |most: f64, h| most.max(*h))
    }

    fn gain(&self, sum: &[f64]) -> f64 {
        let least = self.least();
        let along = |at: usize| self.vectors.as_ref().map_or(sum[at], |vectors| dot(&vectors[at], sum));
        let of = |(at, h): (usize, &f64)| if *h > least { along(at).powi(2) / (h + self.penalty) } else { 0.0 };
        self.values.iter().enumerate().map(of).sum()
    }

    fn degrees(&self) -> f64 {
        let least = self.least();
        self.values.iter().filter(|h| **h > least).map(|h| h / (h + self.penalty)).sum()
    }
}

/// Orthonormal columns that span those of some rows.
fn orthonormal(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut found: Vec<Vec<f64>> = Vec::new();
    for j in 0..rows.first().map_or(0, Vec::len) {
        let mut column: Vec<f64> = rows.iter().map(|row| row[j]).collect();
        let size = norm(&column);
        found.iter().for_each(|known| subtract(&mut column, known));
        let left = norm(&column);
        if left > NEW * size {
            column.iter_mut().for_each(|x| *x /= left);
            found.push(column);
        }
    }
    found
}

/// Takes the part along a column of length one away.
fn subtract(values: &mut [f64], column: &[f64]) {
    let along = dot(values, column);
    values.iter_mut().zip(column).for_each(|(value, x)| *value -= along * x);
}
