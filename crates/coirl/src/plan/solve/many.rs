//! Planning for many rewards on one kernel.
//!
//! Rewards are planned for in blocks; those that converge too slowly for sweeps are handed to the planner for one reward, from where the
//! block got to. Blocks are cut by index and run in parallel, so the results do not depend on the number of threads. Rewards
//! that share a policy share its feature expectations.

use crate::error::{Error, Result, check_finite};
use crate::model::{Criterion, Mdp};
use crate::plan::Way;
use crate::plan::certificate::Certificate;
use crate::plan::evaluate::{
    self, SINGLE_PRECISION_ENTRIES, SINGLE_PRECISION_TOLERANCE, chosen_feature_expectations, slow_values,
};
use crate::plan::kernels::buffers::OccupancyBuffers;
use crate::plan::kernels::linear::ROUNDING;
use crate::plan::kernels::occupancies::{Arrivals, LANES};
use crate::plan::planner::{Accuracy, Method, Plan, Planner, Start, start_value};
use crate::plan::policy::{Policy, pairs_of};
use crate::plan::problem::Problem;
use crate::plan::solve::blocks::{BLOCK, Blocks, LanePlan, SMALLEST_BLOCK};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// Bytes of results that may wait for the sink: the fewer waves, the less the threads wait for each other.
const WAVE_BYTES: usize = 64 << 20;
/// Bytes of policies that the cache may hold.
const CACHE_BYTES: usize = 64 << 20;

/// Cosine from which the policy for one reward is a good start for another.
const SIMILAR: f64 = 0.9;

/// What to return for each reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManyOptions {
    /// Feature expectations from the start distribution: exact when planning exactly, else to about the planner's tolerance
    /// relative to their size.
    pub feature_expectations: bool,
    /// The values of all states.
    pub values: bool,
}

impl Default for ManyOptions {
    fn default() -> Self {
        Self { feature_expectations: true, values: false }
    }
}

/// The plan of one of many rewards.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct PlannedReward {
    /// Row of the weights.
    pub index: usize,
    /// The policy.
    pub policy: Policy,
    /// ξ·V, or the gain.
    pub value: f64,
    /// V, where asked for.
    pub values: Option<Vec<f64>>,
    /// μ, where asked for.
    pub feature_expectations: Option<Vec<f64>>,
    /// Status and bounds.
    pub certificate: Certificate,
    /// Which way planning went.
    pub way: Way,
}

impl Planner {
    /// Plans for every row of `weights` (row-major, `n_features` numbers each) and hands the results to `sink` in order, a
    /// wave of blocks at a time, so that memory does not grow with the number of rewards. `sink` may stop the work.
    pub fn plan_many(
        &self,
        mdp: &Mdp<'_>,
        weights: &[f64],
        options: ManyOptions,
        mut sink: impl FnMut(PlannedReward) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check()?;
        let k = mdp.features().n_features();
        if !weights.len().is_multiple_of(k) {
            return Err(Error::shape("weights", format!("[any number, {k}]"), format!("{} numbers", weights.len())));
        }
        check_finite("weights", weights)?;
        let total = weights.len() / k;
        let many = Many::new(self, mdp, options);
        let threads = rayon::current_num_threads();
        let wave = (WAVE_BYTES / (BLOCK * 8 * (mdp.n_states() + k))).clamp(2 * threads, 64 * threads);
        let mut done = 0;
        let blocks: Vec<&[f64]> = weights.chunks(BLOCK * k).collect();
        for (w, blocks) in blocks.chunks(wave).enumerate() {
            let plan = |(b, rows): (usize, &&[f64])| many.plan_block((w * wave + b) * BLOCK, rows);
            // One by one, because blocks differ in their time.
            let planned: Vec<Result<Vec<PlannedReward>>> =
                blocks.par_iter().with_max_len(1).enumerate().map(plan).collect();
            for block in planned {
                for result in block? {
                    done += 1;
                    if sink(result).is_break() {
                        return Err(Error::Interrupted { done, total });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Planner {
    /// The plans for every row of `weights`, checked before, in order.
    pub(crate) fn plan_rows(&self, mdp: &Mdp<'_>, weights: &[f64], options: ManyOptions) -> Result<Vec<PlannedReward>> {
        self.check()?;
        let many = Many::new(self, mdp, options);
        let block = |(b, rows): (usize, &[f64])| many.plan_block(b * BLOCK, rows);
        let blocks = weights.par_chunks(BLOCK * mdp.features().n_features()).with_max_len(1).enumerate().map(block);
        Ok(blocks.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// A plan as if it were the first of many, with what is wanted of it.
    pub(crate) fn one_of_many(&self, mdp: &Mdp<'_>, plan: Plan, options: ManyOptions) -> Result<PlannedReward> {
        if options.feature_expectations {
            return Many::new(self, mdp, options).with_expectations(0, plan);
        }
        Ok(planned(0, plan, options))
    }
}

/// A plan as one of many, without its feature expectations.
fn planned(index: usize, plan: Plan, options: ManyOptions) -> PlannedReward {
    let Plan { policy, values, value, certificate, way } = plan;
    let values = options.values.then_some(values);
    PlannedReward { index, policy, value, values, feature_expectations: None, certificate, way }
}

/// What all blocks share.
struct Many<'a, 'm> {
    planner: &'a Planner,
    mdp: &'a Mdp<'m>,
    options: ManyOptions,
    in_blocks: bool,
    /// How well occupancies are computed, relative to their size: as well as the values they belong to.
    occupancy_tolerance: f64,
    blocks: Blocks<'a, 'm>,
    /// Where feature expectations are computed many policies at a time.
    arrivals: Option<Arrivals>,
    cache: PolicyCache,
}

impl<'a, 'm> Many<'a, 'm> {
    fn new(planner: &'a Planner, mdp: &'a Mdp<'m>, options: ManyOptions) -> Self {
        let in_blocks = matches!(mdp.criterion(), Criterion::Discounted { .. }) && planner.method == Method::Automatic;
        let occupancy_tolerance = match planner.accuracy {
            Accuracy::Exact => ROUNDING,
            Accuracy::Tolerance(tolerance) => (tolerance / mdp.features().max_abs().max(1.0)).clamp(ROUNDING, 1e-3),
        };
        let in_lanes = options.feature_expectations
            && matches!(mdp.criterion(), Criterion::Discounted { .. })
            && occupancy_tolerance >= SINGLE_PRECISION_TOLERANCE
            && mdp.kernel().n_entries() >= SINGLE_PRECISION_ENTRIES;
        let arrivals = in_lanes.then(|| Arrivals::new(mdp)).flatten();
        let blocks = Blocks::new(planner, mdp);
        let cache = PolicyCache::default();
        Self { planner, mdp, options, in_blocks, occupancy_tolerance, blocks, arrivals, cache }
    }

    fn plan_block(&self, first: usize, weights: &[f64]) -> Result<Vec<PlannedReward>> {
        let k = self.mdp.features().n_features();
        let n = weights.len() / k;
        if !self.in_blocks || n < SMALLEST_BLOCK {
            let one = |(i, w): (usize, &[f64])| self.plan_one(first + i, w);
            return weights.chunks_exact(k).enumerate().map(one).collect();
        }
        let mut results = Vec::with_capacity(n);
        let mut policies: Vec<Vec<u32>> = Vec::with_capacity(n);
        for (i, (plan, w)) in self.blocks.plan(weights)?.into_iter().zip(weights.chunks_exact(k)).enumerate() {
            let plan = match plan {
                LanePlan::Done { chosen, values, certificate } => {
                    let policy = Policy::from_pairs(self.mdp.pairs(), &chosen);
                    policies.push(chosen);
                    let value = start_value(self.mdp.initial(), &values);
                    Plan { policy, value, values, certificate, way: Way::Lanes }
                }
                LanePlan::Start(values) => {
                    let before = weights.chunks_exact(k).zip(&policies).zip(&results);
                    let slow = before.filter(|(_, result): &(_, &PlannedReward)| result.way.is_slow());
                    let plan = self.plan_slowly(w, values, nearest(w, slow.map(|(known, _)| known)))?;
                    policies.push(pairs_of(self.mdp.pairs(), plan.policy.actions().unwrap_or_default())?);
                    if self.options.feature_expectations && plan.way.is_slow() {
                        // While the factors of this policy are at hand.
                        self.expectations(&policies[i..])?;
                    }
                    plan
                }
            };
            results.push(planned(first + i, plan, self.options));
        }
        for (result, mu) in results.iter_mut().zip(self.expectations(&policies)?) {
            result.feature_expectations = mu;
        }
        Ok(results)
    }

    /// A plan for a reward on which a block made no progress: from the values that the block got to, or from those that the policy for the nearest
    /// reward has for this one.
    fn plan_slowly(&self, w: &[f64], values: Vec<f64>, nearest: Option<&[u32]>) -> Result<Plan> {
        let reward = self.mdp.reward(w)?;
        let near = nearest.map(|chosen| slow_values(&Problem::new(self.mdp, &reward)?, chosen)).transpose()?;
        let values = near.unwrap_or(values);
        let start = if values.iter().all(|v| v.is_finite()) { Start::Values(&values) } else { Start::Cold };
        self.planner.plan_from(self.mdp, &reward, start)
    }

    fn plan_one(&self, index: usize, w: &[f64]) -> Result<PlannedReward> {
        let plan = self.planner.plan(self.mdp, &self.mdp.reward(w)?)?;
        self.with_expectations(index, plan)
    }

    fn with_expectations(&self, index: usize, plan: Plan) -> Result<PlannedReward> {
        let mut result = planned(index, plan, self.options);
        result.feature_expectations = match (&result.policy, self.mdp.criterion()) {
            (Policy::Stationary(actions), Criterion::Discounted { .. } | Criterion::TotalReward) => {
                self.expectations(&[pairs_of(self.mdp.pairs(), actions)?])?.pop().flatten()
            }
            _ if self.options.feature_expectations => Some(evaluate::feature_expectations(self.mdp, &result.policy)?),
            _ => None,
        };
        Ok(result)
    }

    /// μ of each policy of a block, from the cache where another reward had the same. What a policy gets does not depend on the others.
    fn expectations(&self, policies: &[Vec<u32>]) -> Result<Vec<Option<Vec<f64>>>> {
        if !self.options.feature_expectations {
            return Ok(vec![None; policies.len()]);
        }
        let keys: Vec<u64> = policies.iter().map(|chosen| digest(chosen)).collect();
        let known = |i: usize| self.cache.get(keys[i], &policies[i]).map(|mu| mu.to_vec());
        let mut found: Vec<Option<Vec<f64>>> = (0..policies.len()).map(known).collect();
        if let Some(arrivals) = &self.arrivals {
            let missing: Vec<usize> = (0..policies.len()).filter(|&i| found[i].is_none()).collect();
            for lanes in missing.chunks(LANES) {
                let open: Vec<&[u32]> = lanes.iter().map(|&i| &policies[i][..]).collect();
                let mut buffers = OccupancyBuffers::lent(self.mdp.kernel().n_entries());
                let (simd, tolerance) = (self.planner.simd, self.occupancy_tolerance);
                let mu = arrivals.feature_expectations(simd, self.mdp, &open, tolerance, &mut buffers.lanes);
                for (&i, mu) in lanes.iter().zip(mu) {
                    mu.iter().for_each(|mu| self.cache.put(keys[i], &policies[i], mu));
                    found[i] = mu;
                }
            }
        }
        for i in 0..policies.len() {
            // Another of this block may have had the same policy.
            if found[i].is_none() {
                found[i] = known(i);
            }
            if found[i].is_none() {
                let computed = chosen_feature_expectations(self.mdp, &policies[i], self.occupancy_tolerance)?;
                self.cache.put(keys[i], &policies[i], &computed);
                found[i] = Some(computed);
            }
        }
        Ok(found)
    }
}

/// Feature expectations by policy. They depend on the policy alone, so a hit changes nothing but the time.
#[derive(Default)]
struct PolicyCache {
    known: Mutex<HashMap<u64, KnownPolicy>>,
}

struct KnownPolicy {
    chosen: Box<[u32]>,
    mu: Arc<[f64]>,
}

impl PolicyCache {
    /// What is known of a policy with this digest.
    fn get(&self, key: u64, chosen: &[u32]) -> Option<Arc<[f64]>> {
        let known = self.known.lock().ok()?;
        known.get(&key).filter(|policy| *policy.chosen == *chosen).map(|policy| policy.mu.clone())
    }

    fn put(&self, key: u64, chosen: &[u32], mu: &[f64]) {
        if let Ok(mut known) = self.known.lock() {
            let entry = 4 * chosen.len() + 8 * mu.len();
            if (known.len() + 1) * entry <= CACHE_BYTES {
                known.insert(key, KnownPolicy { chosen: chosen.into(), mu: mu.into() });
            }
        }
    }
}

/// The policy of the reward in the most similar direction, where one is similar enough.
fn nearest<'p>(w: &[f64], before: impl Iterator<Item = (&'p [f64], &'p Vec<u32>)>) -> Option<&'p [u32]> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = |v: &[f64]| dot(w, v) / (dot(w, w) * dot(v, v)).sqrt();
    let known = before.map(|(v, chosen)| (cosine(v), chosen)).filter(|(cosine, _)| *cosine >= SIMILAR);
    known.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, chosen)| &chosen[..])
}

fn digest(chosen: &[u32]) -> u64 {
    chosen.iter().fold(0, |h: u64, &pair| (h.rotate_left(5) ^ u64::from(pair)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
