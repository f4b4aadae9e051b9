//! Whether the context helps: a mapping that sees it against one that does not, on demonstrations that neither has seen.
//!
//! The loss has the unit of the reward, and the two mappings have different rewards. What is compared is a share:
//!
//! ```text
//! unexplained = Σ f(c)·(μ^f − μ*) / Σ f(c)·(μ^f − μ^uniform),
//! ```
//!
//! what the experts miss under f relative to what the best policy under f gains over chance, summed over held-out
//! demonstrations. It is 0 where the experts act optimally under f, 1 where under f they might as well act at random, and does
//! not change when f is multiplied; the denominator is never negative. A mapping under which nothing beats chance explains
//! nothing and counts as 1.
//!
//! Both mappings are fitted by the same method on the same folds. The one without context is a single vector of weights; the
//! dynamics follow the context all the same. The difference is paired by demonstration, and its interval comes from
//! resampling demonstrations; it does not show the spread between fits. Cost: two fits per fold and a plan per demonstration.

use super::bootstrap::unwatched;
use super::progress::{Listener, tell};
use crate::contextual::Response;
use crate::error::{Error, Result, check_room};
use crate::learn::{Problem, Watch};
use crate::methods::{Settings, fit};
use crate::model::Context;
use crate::optim::dot;
use crate::random::stream;
use crate::resampling::{Interval, check_level};
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextHelpsSettings {
    /// Parts the demonstrations are cut into; each is held out once.
    pub folds: usize,
    /// Resamples of the held-out demonstrations.
    pub resamples: usize,
    /// Share of the resamples inside the interval.
    pub level: f64,
    /// A difference of the unexplained shares below this is none.
    pub margin: f64,
    /// Seed of folds and resamples.
    pub seed: u64,
}

impl Default for ContextHelpsSettings {
    fn default() -> Self {
        Self { folds: 5, resamples: 2000, level: 0.95, margin: 0.01, seed: 0 }
    }
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval of the difference is above zero.
    Helps,
    /// The whole interval is below the margin.
    DoesNotHelp,
    /// Neither.
    NotDecided,
}

/// What the comparison came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ContextHelps {
    /// The answer.
    pub verdict: Verdict,
    /// Unexplained share of mappings that see the context, on held-out demonstrations.
    pub with_context: f64,
    /// Unexplained share of mappings that do not see the context, on held-out demonstrations.
    pub without_context: f64,
    /// without − with: positive where the context helps.
    pub difference: f64,
    /// The middle of the resampled differences.
    pub interval: Interval,
    /// Demonstrations compared.
    pub demonstrations: usize,
}

/// A gain below this share of the value is rounding.
const ROUNDING: f64 = 1e-9;

/// What the experts miss, and what there is to gain, under a mapping: one pair per demonstration.
type Parts = Vec<(f64, f64)>;

/// Fits with and without context on the same folds and compares on what was held out.
pub fn context_helps(
    problem: &Problem<'_>,
    settings: &Settings,
    comparison: &ContextHelpsSettings,
    listener: Listener<'_>,
) -> Result<ContextHelps> {
    check_level(comparison.level)?;
    let n = problem.len();
    if comparison.folds < 2 || comparison.folds > n {
        return Err(Error::InvalidSetting {
            name: "folds",
            value: comparison.folds.to_string(),
            reason: "expected at least 2 and at most as many as there are demonstrations",
        });
    }
    if comparison.resamples == 0 {
        return Err(Error::InvalidSetting { name: "resamples", value: "0".into(), reason: "expected at least 1" });
    }
    check_room("resamples", &[comparison.resamples])?;
    // W₁ of the run has the shape of the mapping that sees the context: both start from the method's own.
    let settings = Settings { initial: None, ..unwatched(settings) };
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut stream(comparison.seed, "context folds", 0));
    let chance = problem.planner().random_responses(&problem.data().queries(&problem.data().all()))?;
    let blind = problem.select(&problem.data().all())?.without_context()?;
    let (mut seeing, mut not_seeing) = (vec![(0.0, 0.0); n], vec![(0.0, 0.0); n]);
    for fold in 0..comparison.folds {
        let held_out: Vec<usize> = order.iter().copied().skip(fold).step_by(comparison.folds).collect();
        let learned_from: Vec<usize> = (0..n).filter(|i| !held_out.contains(i)).collect();
        let of = |side: &Problem<'_>| parts(side, &settings, &learned_from, &held_out, &chance);
        let (with, without) = rayon::join(|| of(problem), || of(&blind));
        for (all, own) in [(&mut seeing, with?), (&mut not_seeing, without?)] {
            held_out.iter().zip(own).for_each(|(&i, part)| all[i] = part);
        }
        tell(listener, fold + 1, comparison.folds)?;
    }
    let difference = |drawn: &[usize]| unexplained(&not_seeing, drawn) - unexplained(&seeing, drawn);
    let resample = |number: usize| {
        let mut random = stream(comparison.seed, "context resample", number as u64);
        let drawn: Vec<usize> = (0..n).map(|_| random.random_range(0..n)).collect();
        difference(&drawn)
    };
    let differences: Vec<f64> = (0..comparison.resamples).into_par_iter().map(resample).collect();
    let all = problem.data().all();
    let difference = difference(&all);
    let interval =
        Interval::of(differences, comparison.level).unwrap_or(Interval { lower: difference, upper: difference });
    Ok(ContextHelps {
        verdict: if interval.upper < comparison.margin {
            Verdict::DoesNotHelp
        } else if interval.lower > 0.0 {
            Verdict::Helps
        } else {
            Verdict::NotDecided
        },
        with_context: unexplained(&seeing, &all),
        without_context: unexplained(&not_seeing, &all),
        difference,
        interval,
        demonstrations: n,
    })
}

/// Fits on some demonstrations and takes the share apart on others.
fn parts(
    problem: &Problem<'_>,
    settings: &Settings,
    learned_from: &[usize],
    held_out: &[usize],
    chance: &[Vec<f64>],
) -> Result<Parts> {
    let fitted = fit(&problem.select(learned_from)?, settings, Watch::default(), &mut ())?;
    let inputs: Vec<Context> = held_out.iter().map(|&i| problem.data().input(i).clone()).collect();
    let weights = fitted.agent.reward_mapping()?.weights_of_all(&inputs)?;
    let agents = problem.planner().best_responses(&problem.data().queries(held_out), &weights)?;
    let rewards = weights.chunks_exact(problem.n_features());
    let part = |((&i, agent), weights): ((&usize, &Response), &[f64])| {
        let (value, by_chance) = (dot(weights, &agent.feature_expectations), dot(weights, &chance[i]));
        let gain = value - by_chance;
        let is_rounding = gain <= ROUNDING * (value.abs() + by_chance.abs());
        Ok((value - dot(weights, problem.data().expectations(i)?), if is_rounding { 0.0 } else { gain }))
    };
    let mut parts: Parts = held_out.iter().zip(&agents).zip(rewards).map(part).collect::<Result<_>>()?;
    // In units of the mean gain, for every fold has its own mapping and scale.
    let mean = parts.iter().map(|part| part.1).sum::<f64>() / parts.len() as f64;
    let in_gains = |part: &(f64, f64)| if mean > 0.0 { (part.0 / mean, part.1 / mean) } else { (1.0, 1.0) };
    parts = parts.iter().map(in_gains).collect();
    Ok(parts)
}

/// The ratio of the sums over some demonstrations.
fn unexplained(parts: &[(f64, f64)], drawn: &[usize]) -> f64 {
    let (missed, gain) = drawn.iter().fold((0.0, 0.0), |sum, &i| (sum.0 + parts[i].0, sum.1 + parts[i].1));
    if gain > 0.0 { missed / gain } else { 1.0 }
}
