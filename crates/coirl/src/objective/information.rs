//! What demonstrated choices tell about rewards to second order: Fisher's information, and outer products of scores.
//!
//! The score of a decision is s(a) (g(s, a) − Σ_b π(b | s) g(s, b)) with g = ∂Q/∂w = φ + γ P ψ, ψ the successor features of the soft
//! policy and s(a) the share of the probability of a that is no lapse. One linear system per feature and context, several side by side.

use super::choices::{Choices, Evidence, Precision, Warm};
use crate::error::Result;
use crate::model::Criterion;
use crate::plan::{SOFT_LANES, SoftBlock, SoftMany};
use rayon::prelude::*;

/// Features beyond which matrices over them are not made.
const MOST_FEATURES: usize = 256;
/// Multiplications beyond which the information of one context is not computed.
const MOST_WORK: f64 = 1e10;

/// What one demonstration tells about the rewards of its context, summed over decisions: k × k, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Information {
    /// Fisher's: what decisions in these states tell on average.
    pub expected: Vec<f64>,
    /// Outer products of the scores of the decisions that were made; of feature expectations the expected ones.
    pub outer: Vec<f64>,
}

/// How often a state was decided in, or is visited.
type Visits = Vec<(usize, f64)>;

impl Choices {
    /// Whether matrices over features are worth their cost.
    fn has_information(&self) -> bool {
        let (k, pairs) = (self.model().n_features() as f64, self.model().pairs().len() as f64);
        let systems = pairs * k * 50.0;
        let sums = match self.from_actions() {
            true => 0.0,
            false => pairs * k * k,
        };
        self.model().n_features() <= MOST_FEATURES
            && systems + sums <= MOST_WORK
            && matches!(self.model().criterion(), Criterion::Discounted { .. } | Criterion::TotalReward)
    }

    /// What a demonstration tells at some weights of its context; nothing where that would take too long.
    pub fn information(&self, index: usize, weights: &[f64], lapses: f64) -> Result<Option<Information>> {
        if !self.has_information() {
            return Ok(None);
        }
        let k = self.model().n_features();
        let many = SoftMany::new(self.model().mdp(self.context(index))?, Precision::Full.tolerance())?;
        let mut block = many.plan::<SOFT_LANES>(weights, &[None])?;
        let Some(successors) = block.successor_features(0) else { return Ok(None) };
        let visits = self.visits_of(&mut block, index)?;
        let expected = fisher(&block, &successors, &visits, lapses, k);
        let outer = match self.evidence(index) {
            Evidence::Expectations { .. } => expected.clone(),
            Evidence::Actions(decisions) => {
                let mut outer = vec![0.0; k * k];
                for decision in decisions {
                    for (pair, _, score) in scores(&block, &successors, decision.state, lapses) {
                        if pair == decision.pair {
                            add_outer(&mut outer, decision.count, &score);
                        }
                    }
                }
                outer
            }
        };
        Ok(Some(Information { expected, outer }))
    }

    /// The mean information of a decision, of the policies of some demonstrations in the states that all of `indices` decided in.
    pub fn curvature(
        &self,
        indices: &[usize],
        sampled: &[(usize, Vec<f64>)],
        lapses: f64,
        precision: Precision,
        warm: Option<&Warm>,
    ) -> Result<Option<Vec<f64>>> {
        if !self.has_information() {
            return Ok(None);
        }
        let k = self.model().n_features();
        let pooled = self.decided_in(indices);
        let of = |(index, weights): &(usize, Vec<f64>)| -> Result<Option<(Vec<f64>, f64)>> {
            let many = SoftMany::new(self.model().mdp(self.context(*index))?, precision.tolerance())?;
            let near = warm.and_then(|warm| warm.values(*index));
            let mut block = many.plan::<SOFT_LANES>(weights, &[near.as_deref()])?;
            let Some(successors) = block.successor_features(0) else { return Ok(None) };
            let own;
            let visits = match &pooled {
                Some(pooled) => pooled,
                None => {
                    own = self.visits_of(&mut block, *index)?;
                    &own
                }
            };
            let total: f64 = visits.iter().map(|visit| visit.1).sum();
            Ok(Some((fisher(&block, &successors, visits, lapses, k), total)))
        };
        let found: Vec<Option<(Vec<f64>, f64)>> = sampled.par_iter().map(of).collect::<Result<_>>()?;
        let mut mean = vec![0.0; k * k];
        let mut total = 0.0;
        for own in found {
            let Some((own, n)) = own else { return Ok(None) };
            mean.iter_mut().zip(&own).for_each(|(sum, x)| *sum += x);
            total += n;
        }
        Ok((total > 0.0).then(|| mean.iter().map(|x| x / total).collect()))
    }

    /// The states that demonstrations decided in; nothing where single actions are not known.
    fn decided_in(&self, indices: &[usize]) -> Option<Visits> {
        let mut counts = vec![0.0; self.model().n_states()];
        for &i in indices {
            let Evidence::Actions(decisions) = self.evidence(i) else { return None };
            decisions.iter().for_each(|decision| counts[decision.state] += decision.count);
        }
        Some(counts.into_iter().enumerate().filter(|entry| entry.1 > 0.0).collect())
    }

    /// The states of a demonstration: decided in, or visited by its soft policy from where it starts.
    fn visits_of<const L: usize>(&self, block: &mut SoftBlock<'_, '_, L>, index: usize) -> Result<Visits> {
        let start = match self.evidence(index) {
            Evidence::Actions(_) => return Ok(self.decided_in(&[index]).unwrap_or_default()),
            Evidence::Expectations { start, .. } => start,
        };
        let (_, on_pairs) = self.of_start(block, 0, start);
        let (_, visits) = block.pull_back_from(&[on_pairs], &[None])?;
        let mut visits = visits.into_iter().next().unwrap_or_default();
        start.iter().for_each(|(s, share)| visits[*s] += share);
        Ok(visits.into_iter().enumerate().filter(|entry| entry.1 > 0.0).collect())
    }
}

/// Pairs of a state with their probabilities and scores, lapses counted.
fn scores<const L: usize>(
    block: &SoftBlock<'_, '_, L>,
    successors: &[f64],
    state: usize,
    lapses: f64,
) -> Vec<(usize, f64, Vec<f64>)> {
    let pairs = block.pairs_of(state);
    let by_chance = 1.0 / pairs.len() as f64;
    let own: Vec<(usize, f64, Vec<f64>)> =
        pairs.map(|pair| (pair, block.probability(0, pair), block.derivative(successors, pair))).collect();
    let mut mean = vec![0.0; own[0].2.len()];
    for (_, p, derivative) in &own {
        mean.iter_mut().zip(derivative).for_each(|(sum, x)| *sum += p * x);
    }
    let scored = own.into_iter().map(|(pair, p, derivative)| {
        let all = (1.0 - lapses) * p + lapses * by_chance;
        let share = if all > 0.0 { (1.0 - lapses) * p / all } else { 1.0 };
        (pair, all, derivative.iter().zip(&mean).map(|(x, mean)| share * (x - mean)).collect())
    });
    scored.collect()
}

/// Σ over visits of the mean outer product of scores.
fn fisher<const L: usize>(
    block: &SoftBlock<'_, '_, L>,
    successors: &[f64],
    visits: &Visits,
    lapses: f64,
    k: usize,
) -> Vec<f64> {
    let mut sum = vec![0.0; k * k];
    for &(state, n) in visits.iter().filter(|visit| block.pairs_of(visit.0).len() > 1) {
        for (_, p, score) in scores(block, successors, state, lapses) {
            add_outer(&mut sum, n * p, &score);
        }
    }
    sum
}

fn add_outer(sum: &mut [f64], scale: f64, x: &[f64]) {
    for (row, a) in sum.chunks_exact_mut(x.len()).zip(x) {
        let share = scale * a;
        if share != 0.0 {
            row.iter_mut().zip(x).for_each(|(sum, b)| *sum += share * b);
        }
    }
}
