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
pub(crate) struct Information {
    /// Fisher's: what decisions in these states tell on average.
    pub(crate) expected: Vec<f64>,
    /// Outer products of the scores of the decisions that were made; of feature expectations the expected ones.
    pub(crate) outer: Vec<f64>,
}

/// How often a state was decided in, or is visited.
type Visits = Vec<(usize, f64)>;

/// Rewards of demonstrations, and how well plans for them are computed.
pub(crate) struct Planned<'a> {
    /// Demonstrations.
    pub(crate) indices: &'a [usize],
    /// Their reward weights, row by row.
    pub(crate) weights: &'a [f64],
    /// ε.
    pub(crate) lapses: f64,
    pub(crate) precision: Precision,
    pub(crate) warm: Option<&'a Warm>,
}

impl Choices {
    /// Whether matrices over features are worth their cost.
    fn has_information(&self) -> bool {
        let (k, pairs) = (self.model().n_features() as f64, self.model().pairs().len() as f64);
        let sums = if self.from_actions() { 0.0 } else { k };
        self.model().n_features() <= MOST_FEATURES
            && pairs * k * (50.0 + sums) <= MOST_WORK
            && matches!(self.model().criterion(), Criterion::Discounted { .. } | Criterion::TotalReward)
    }

    /// What each demonstration tells; nothing where that would take too long.
    pub(crate) fn information(&self, planned: &Planned<'_>) -> Result<Option<Vec<Information>>> {
        self.each(planned, |block, l, successors| {
            let index = planned.indices[l.0];
            let visits = self.visits_of(block, l.1, index)?;
            let of = Lane { block, l: l.1, successors, lapses: planned.lapses };
            let expected = of.fisher(&visits);
            let outer = match self.evidence(index) {
                Evidence::Expectations { .. } => expected.clone(),
                Evidence::Actions(decisions) => {
                    let mut outer = vec![0.0; expected.len()];
                    for decision in decisions {
                        let scores = of.scores(decision.state);
                        if let Some((_, _, score)) = scores.iter().find(|own| own.0 == decision.pair) {
                            add_outer(&mut outer, decision.count, score);
                        }
                    }
                    outer
                }
            };
            Ok(Information { expected, outer })
        })
    }

    /// The mean information of a decision, of the policies of some demonstrations in the states that all of `indices` decided in.
    pub(crate) fn curvature(&self, indices: &[usize], planned: &Planned<'_>) -> Result<Option<Vec<f64>>> {
        let k = self.model().n_features();
        let pooled = self.decided_in(indices);
        let found = self.each(planned, |block, l, successors| {
            let visits = match &pooled {
                Some(pooled) => pooled.clone(),
                None => self.visits_of(block, l.1, planned.indices[l.0])?,
            };
            let total: f64 = visits.iter().map(|visit| visit.1).sum();
            Ok((Lane { block, l: l.1, successors, lapses: planned.lapses }.fisher(&visits), total))
        })?;
        let Some(found) = found else { return Ok(None) };
        let mut mean = vec![0.0; k * k];
        let mut total = 0.0;
        for (own, n) in found {
            mean.iter_mut().zip(&own).for_each(|(sum, x)| *sum += x);
            total += n;
        }
        Ok((total > 0.0).then(|| mean.iter().map(|x| x / total).collect()))
    }

    /// Something of each demonstration, given the block that it is planned in, its place in the list and its lane, and its ψ.
    fn each<T: Send>(
        &self,
        planned: &Planned<'_>,
        of: impl Fn(&mut SoftBlock<'_, '_, SOFT_LANES>, (usize, usize), &[f64]) -> Result<T> + Sync,
    ) -> Result<Option<Vec<T>>> {
        if !self.has_information() {
            return Ok(None);
        }
        let k = self.model().n_features();
        let of_block = |members: &Vec<usize>| -> Result<Option<Vec<(usize, T)>>> {
            let mdp = self.model().mdp(self.context(planned.indices[members[0]]))?;
            let many = SoftMany::new(mdp, planned.precision.tolerance())?;
            let weights: Vec<f64> =
                members.iter().flat_map(|&at| &planned.weights[at * k..(at + 1) * k]).copied().collect();
            let near: Vec<Option<Vec<f64>>> =
                members.iter().map(|&at| planned.warm.and_then(|warm| warm.values(planned.indices[at]))).collect();
            let near: Vec<Option<&[f64]>> = near.iter().map(Option::as_deref).collect();
            let mut block = many.plan::<SOFT_LANES>(&weights, &near)?;
            let mut found = Vec::with_capacity(members.len());
            for (l, &at) in members.iter().enumerate() {
                let Some(successors) = block.successor_features(l) else { return Ok(None) };
                found.push((at, of(&mut block, (at, l), &successors)?));
            }
            Ok(Some(found))
        };
        let blocks = self.blocks(planned.indices)?;
        let found: Vec<Option<Vec<(usize, T)>>> =
            blocks.par_iter().with_max_len(1).map(of_block).collect::<Result<_>>()?;
        let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let mut found: Vec<(usize, T)> = found.into_iter().flatten().collect();
        found.sort_by_key(|own| own.0);
        Ok(Some(found.into_iter().map(|own| own.1).collect()))
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
    fn visits_of<const L: usize>(&self, block: &mut SoftBlock<'_, '_, L>, l: usize, index: usize) -> Result<Visits> {
        let start = match self.evidence(index) {
            Evidence::Actions(_) => return Ok(self.decided_in(&[index]).unwrap_or_default()),
            Evidence::Expectations { start, .. } => start,
        };
        let mut on_pairs = vec![Vec::new(); block.n()];
        on_pairs[l] = self.of_start(block, l, start).1;
        let (_, visits) = block.pull_back_from(&on_pairs, &vec![None; block.n()])?;
        let mut visits = visits.into_iter().nth(l).unwrap_or_default();
        start.iter().for_each(|(s, share)| visits[*s] += share);
        Ok(visits.into_iter().enumerate().filter(|entry| entry.1 > 0.0).collect())
    }
}

/// One policy of a block, with its successor features.
struct Lane<'b, 's, 'm, const L: usize> {
    block: &'b SoftBlock<'s, 'm, L>,
    l: usize,
    successors: &'b [f64],
    lapses: f64,
}

impl<const L: usize> Lane<'_, '_, '_, L> {
    /// Pairs of a state with their probabilities and scores, lapses counted.
    fn scores(&self, state: usize) -> Vec<(usize, f64, Vec<f64>)> {
        let pairs = self.block.pairs_of(state);
        let by_chance = 1.0 / pairs.len() as f64;
        let own: Vec<(usize, f64, Vec<f64>)> = pairs
            .map(|pair| (pair, self.block.probability(self.l, pair), self.block.derivative(self.successors, pair)))
            .collect();
        let mut mean = vec![0.0; own[0].2.len()];
        for (_, p, derivative) in &own {
            mean.iter_mut().zip(derivative).for_each(|(sum, x)| *sum += p * x);
        }
        let scored = own.into_iter().map(|(pair, p, derivative)| {
            let all = (1.0 - self.lapses) * p + self.lapses * by_chance;
            let share = if all > 0.0 { (1.0 - self.lapses) * p / all } else { 1.0 };
            (pair, all, derivative.iter().zip(&mean).map(|(x, mean)| share * (x - mean)).collect())
        });
        scored.collect()
    }

    /// Σ over visits of the mean outer product of scores.
    fn fisher(&self, visits: &Visits) -> Vec<f64> {
        let k = self.block.n_features();
        let mut sum = vec![0.0; k * k];
        for &(state, n) in visits.iter().filter(|visit| self.block.pairs_of(visit.0).len() > 1) {
            for (_, p, score) in self.scores(state) {
                add_outer(&mut sum, n * p, &score);
            }
        }
        sum
    }
}

fn add_outer(sum: &mut [f64], scale: f64, x: &[f64]) {
    for (row, a) in sum.chunks_exact_mut(x.len()).zip(x) {
        let share = scale * a;
        if share != 0.0 {
            row.iter_mut().zip(x).for_each(|(sum, b)| *sum += share * b);
        }
    }
}
