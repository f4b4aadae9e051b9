//! Planning for many rewards on one kernel.
//!
//! Sixteen rewards at a time are iterated side by side in single precision with their values kept near zero, which finds
//! the policies; double precision then certifies them, eight at a time. Rewards that converge too slowly for sweeps are
//! handed to the planner for one reward, from where the block got to. Blocks are cut by index and run in parallel, so the
//! results do not depend on the number of threads. Rewards that share a policy share its feature expectations.

use super::buffers::with_occupancy_buffers;
use super::certificate::{Certificate, Horizon, Status};
use super::evaluate::{self, SINGLE_PRECISION_ENTRIES, SINGLE_PRECISION_TOLERANCE, chosen_feature_expectations};
use super::exact::TIE_TOLERANCE;
use super::lanes::{LaneBackup, LaneChange, LaneChoice, Lanes, PairReward, choose_lanes, improve_lanes, reward_lanes};
use super::linear::ROUNDING;
use super::occupancies::{Arrivals, LANES};
use super::planner::{Accuracy, Method, Plan, Planner, Start, change_within, start_value};
use super::policy::{Policy, pairs_of};
use super::real::Real;
use crate::error::{Error, Result, check_finite};
use crate::model::{Criterion, Features, Mdp, Reward};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// Rewards in a block.
const BLOCK: usize = 16;
/// Rewards certified together.
const HALF: usize = 8;
/// Below this many rewards a block is mostly empty lanes.
const SMALLEST_BLOCK: usize = 4;
/// A lane that would need more sweeps than this is better served on its own.
const MAX_BLOCK_SWEEPS: usize = 600;
/// Sweeps before a rate is believed.
const SETTLING_SWEEPS: usize = 12;
/// Relative span, in units of the reward, at which exact planning in lanes stops.
const EXACT_SPAN: f64 = 1e-12;
/// Bytes of results that may wait for the sink: the fewer waves, the less the threads wait for each other.
const WAVE_BYTES: usize = 64 << 20;
/// Bytes of policies that the cache may hold.
const CACHE_BYTES: usize = 64 << 20;

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
            let planned: Vec<Result<Vec<PlannedReward>>> = blocks.par_iter().enumerate().map(plan).collect();
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

/// What all blocks share.
struct Many<'a, 'm> {
    planner: &'a Planner,
    mdp: &'a Mdp<'m>,
    options: ManyOptions,
    in_blocks: bool,
    /// How well occupancies are computed, relative to their size: as well as the values they belong to.
    occupancy_tolerance: f64,
    /// Where feature expectations are computed many policies at a time.
    arrivals: Option<Arrivals>,
    cache: PolicyCache,
}

/// Rewards of a block in both precisions; `State` per state, `Pair` per pair with the best of each row.
struct BlockReward {
    per_row: bool,
    /// Per state or per row, scaled to at most one.
    scaled: Vec<Lanes<f32, BLOCK>>,
    /// Per state or per row.
    full: [Vec<Lanes<f64, HALF>>; 2],
    /// Per pair, where rewards depend on it.
    pairs: [Vec<Lanes<f64, HALF>>; 2],
    scale: [f64; BLOCK],
}

/// Where single precision got to.
struct Approach {
    /// Values in units of the largest reward of each lane, up to a constant.
    values: Vec<Lanes<f32, BLOCK>>,
    /// The residual before the last backup, in the same units.
    residual: [f64; BLOCK],
    /// The share of the residual that a backup leaves, as seen well above the floor of the precision.
    rate: [f64; BLOCK],
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
        Self { planner, mdp, options, in_blocks, occupancy_tolerance, arrivals, cache: PolicyCache::default() }
    }

    fn plan_block(&self, first: usize, weights: &[f64]) -> Result<Vec<PlannedReward>> {
        let k = self.mdp.features().n_features();
        let n = weights.len() / k;
        if !self.in_blocks || n < SMALLEST_BLOCK {
            let one = |(i, w): (usize, &[f64])| self.plan_one(first + i, w);
            return weights.chunks_exact(k).enumerate().map(one).collect();
        }
        let reward = self.block_reward(weights)?;
        let start = self.iterate_block(&reward);
        let mut results = Vec::with_capacity(n);
        let mut policies = Vec::with_capacity(n);
        for half in 0..2 {
            let lanes = half * HALF..n.min((half + 1) * HALF);
            if !lanes.is_empty() {
                let weights = &weights[lanes.start * k..lanes.end * k];
                self.finish_half(first, half, weights, &reward, &start, &mut results, &mut policies)?;
            }
        }
        let policies: Vec<&[u32]> = policies.iter().map(|chosen| &chosen[..]).collect();
        for (result, mu) in results.iter_mut().zip(self.expectations(&policies)?) {
            result.feature_expectations = mu;
        }
        Ok(results)
    }

    /// The rewards of all lanes; lanes beyond the last reward repeat it.
    fn block_reward(&self, weights: &[f64]) -> Result<BlockReward> {
        let simd = self.planner.simd;
        let k = self.mdp.features().n_features();
        let rows: Vec<&[f64]> = weights.chunks_exact(k).collect();
        let lane = |l: usize| rows[l.min(rows.len() - 1)];
        let n_states = self.mdp.n_states();
        let kernel = self.mdp.kernel();
        let (full, pairs, per_row) = match self.mdp.features() {
            Features::State { values, .. } => {
                let full = [0, 1].map(|half| {
                    let transposed: Vec<[f64; HALF]> =
                        (0..k).map(|j| std::array::from_fn(|l| lane(half * HALF + l)[j])).collect();
                    let mut out = vec![Lanes::ZERO; n_states];
                    reward_lanes(simd, values, &transposed, &mut out);
                    out
                });
                (full, [Vec::new(), Vec::new()], false)
            }
            Features::StateAction(_) => {
                let mut pairs = [0, 1].map(|_| vec![Lanes::<f64, HALF>::ZERO; self.mdp.pairs().len()]);
                for l in 0..rows.len() {
                    if let Reward::Pair(reward) = self.mdp.reward(rows[l])? {
                        reward.iter().zip(&mut pairs[l / HALF]).for_each(|(r, out)| out.0[l % HALF] = *r);
                    }
                }
                let full = [0, 1].map(|half: usize| {
                    let mut best = vec![Lanes([f64::NEG_INFINITY; HALF]); kernel.n_rows()];
                    for (pair, reward) in pairs[half].iter().enumerate() {
                        let best = &mut best[kernel.row_of(pair)].0;
                        (0..HALF).for_each(|l| best[l] = best[l].max(reward.0[l]));
                    }
                    best
                });
                (full, pairs, true)
            }
        };
        let mut scale = [0.0_f64; BLOCK];
        for half in 0..2 {
            for reward in &full[half] {
                (0..HALF).for_each(|l| scale[half * HALF + l] = scale[half * HALF + l].max(reward.0[l].abs()));
            }
        }
        if let Some(l) = (0..BLOCK).find(|&l| !(scale[l] < f64::MAX / 1e16)) {
            return Err(Error::NotFinite { what: "reward", index: l, value: scale[l] });
        }
        let inverse = scale.map(|x| if x > f64::MIN_POSITIVE { 1.0 / x } else { 0.0 });
        let scaled = (0..full[0].len())
            .map(|i| Lanes(std::array::from_fn(|l| (full[l / HALF][i].0[l % HALF] * inverse[l]) as f32)))
            .collect();
        Ok(BlockReward { per_row, scaled, full, pairs, scale })
    }

    /// Single precision until each lane is near its tolerance or the precision's floor. Returns scaled values.
    fn iterate_block(&self, reward: &BlockReward) -> Approach {
        let kernel = self.mdp.kernel();
        let gamma = self.mdp.criterion().discount();
        let mut v = if reward.per_row { vec![Lanes::ZERO; kernel.n_states()] } else { reward.scaled.clone() };
        // What is collected for ever is known at once; see `Problem::first_values`.
        for s in kernel.absorbing() {
            let rows = &kernel.layout().state_rows;
            let own = if reward.per_row { rows[s] as usize..rows[s + 1] as usize } else { s..s + 1 };
            let best = |l: usize| reward.scaled[own.clone()].iter().fold(f32::MIN, |best, r| best.max(r.0[l]));
            v[s] = Lanes(std::array::from_fn(|l| best(l) / (1.0 - gamma as f32)));
        }
        let mut out = v.clone();
        let mut shift = [0.0_f32; BLOCK];
        let goal: [f64; BLOCK] = std::array::from_fn(|l| match self.planner.accuracy {
            Accuracy::Exact => 0.0,
            Accuracy::Tolerance(tolerance) if reward.scale[l] > 0.0 => {
                change_within(tolerance, gamma) / reward.scale[l]
            }
            Accuracy::Tolerance(_) => f64::INFINITY,
        });
        let mut pace = Pace::new();
        let mut residual = [f64::INFINITY; BLOCK];
        let mut rate = [1.0; BLOCK];
        for sweep in 0..MAX_BLOCK_SWEEPS {
            let change = improve_lanes(
                self.planner.simd,
                LaneBackup {
                    kernel,
                    p: kernel.single_precision(),
                    gamma: gamma as f32,
                    reward: &reward.scaled,
                    reward_per_row: reward.per_row,
                    shift,
                    v: &v,
                    out: &mut out,
                },
            );
            std::mem::swap(&mut v, &mut out);
            shift = std::array::from_fn(|l| 0.5 * (change.lo[l] + change.hi[l]));
            if sweep % 8 == 0 {
                pace.floor = largest(&v).map(|x| 3.0 * f64::from(f32::EPSILON) * f64::from(x));
            }
            let before = residual;
            residual = std::array::from_fn(|l| 0.5 * f64::from(change.hi[l] - change.lo[l]));
            for l in (0..BLOCK).filter(|&l| residual[l] > 20.0 * pace.floor[l] && before[l].is_finite()) {
                rate[l] = residual[l] / before[l];
            }
            if pace.is_over(&residual, &goal) {
                break;
            }
        }
        Approach { values: v, residual, rate }
    }

    /// Double precision for half a block: backups to the tolerance, the choice of policies, certificates.
    #[allow(clippy::too_many_arguments)] // the pieces of one block
    fn finish_half(
        &self,
        first: usize,
        half: usize,
        weights: &[f64],
        reward: &BlockReward,
        start: &Approach,
        results: &mut Vec<PlannedReward>,
        policies: &mut Vec<Vec<u32>>,
    ) -> Result<()> {
        let kernel = self.mdp.kernel();
        let gamma = self.mdp.criterion().discount();
        let simd = self.planner.simd;
        let k = self.mdp.features().n_features();
        let scale: [f64; HALF] = std::array::from_fn(|l| reward.scale[half * HALF + l]);
        let mut v: Vec<Lanes<f64, HALF>> = start
            .values
            .iter()
            .map(|x| Lanes(std::array::from_fn(|l| f64::from(x.0[half * HALF + l]) * scale[l])))
            .collect();
        let goal: [f64; HALF] = match self.planner.accuracy {
            Accuracy::Exact => scale.map(|x| 0.5 * EXACT_SPAN * x),
            Accuracy::Tolerance(tolerance) => [change_within(tolerance, gamma); HALF],
        };
        let pair_reward = match reward.per_row {
            false => PairReward::State(&reward.full[half]),
            true => PairReward::Pair(&reward.pairs[half]),
        };
        let choose = |tie: [f64; HALF], v: &[Lanes<f64, HALF>]| choose_lanes(simd, kernel, gamma, pair_reward, tie, v);
        let within = |change: &LaneChange<f64, HALF>| (0..HALF).all(|l| 0.5 * (change.hi[l] - change.lo[l]) <= goal[l]);
        let exact = self.planner.accuracy == Accuracy::Exact;
        // Single precision is often enough for a loose tolerance; then this pass is the only one.
        let enough = !exact && (0..HALF).all(|l| start.residual[half * HALF + l] * scale[l] <= goal[l]);
        let mut sweeps = 0;
        let choice = if let Some(first) = enough.then(|| choose([0.0; HALF], &v)).filter(|c| within(&c.backup)) {
            first
        } else {
            let mut out = v.clone();
            let mut pace = Pace::new();
            let mut shift = [0.0; HALF];
            loop {
                let change = improve_lanes(
                    simd,
                    LaneBackup {
                        kernel,
                        p: kernel.probabilities(),
                        gamma,
                        reward: &reward.full[half],
                        reward_per_row: reward.per_row,
                        shift,
                        v: &v,
                        out: &mut out,
                    },
                );
                std::mem::swap(&mut v, &mut out);
                sweeps += 1;
                shift = std::array::from_fn(|l| 0.5 * (change.lo[l] + change.hi[l]));
                let residual: [f64; HALF] = std::array::from_fn(|l| 0.5 * (change.hi[l] - change.lo[l]));
                let over = pace.is_over(&residual, &goal) || sweeps >= MAX_BLOCK_SWEEPS;
                // The pass that chooses is a backup too: it may do the last step, if steps go on as they did.
                let next_suffices = (0..HALF).all(|l| residual[l] * start.rate[half * HALF + l] <= 0.8 * goal[l]);
                if exact && over {
                    // Ties are a matter of the true values, which are a constant away.
                    v.iter_mut().for_each(|x| (0..HALF).for_each(|l| x.0[l] += shift[l] / (1.0 - gamma)));
                    let largest = choose([0.0; HALF], &v).largest;
                    break choose(largest.map(|q| TIE_TOLERANCE * q), &v);
                }
                if over || (!exact && next_suffices) {
                    let last = choose([0.0; HALF], &v);
                    if over || within(&last.backup) {
                        break last;
                    }
                }
            }
        };
        let max_row = kernel.layout().row_start.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        let size = largest(&v);
        for (l, w) in weights.chunks_exact(k).enumerate() {
            let index = first + half * HALF + l;
            // As in `backup_rounding`.
            let operations = (max_row + 4) as f64;
            let rounding = operations * f64::EPSILON * (size[l] + scale[l]) + operations * f64::from_bits(1);
            match self.certified(&choice, l, gamma, goal[l], rounding) {
                Some((values, certificate)) => {
                    let chosen: Vec<u32> = choice.chosen.iter().map(|c| c[l]).collect();
                    results.push(PlannedReward {
                        index,
                        policy: Policy::from_pairs(self.mdp.pairs(), &chosen),
                        value: start_value(self.mdp.initial(), &values),
                        values: self.options.values.then_some(values),
                        feature_expectations: None,
                        certificate: Certificate { sweeps: certificate.sweeps + sweeps, ..certificate },
                    });
                    policies.push(chosen);
                }
                None => {
                    let hint: Vec<f64> = v.iter().map(|x| x.0[l]).collect();
                    let reward = self.mdp.reward(w)?;
                    let plan = self.planner.plan_from(self.mdp, &reward, Start::Values(&hint))?;
                    policies.push(pairs_of(self.mdp.pairs(), plan.policy.actions().unwrap_or_default())?);
                    results.push(self.planned(index, plan));
                }
            }
        }
        Ok(())
    }

    /// The values and certificate of a lane, or nothing where it is not good enough.
    fn certified(
        &self,
        choice: &LaneChoice<HALF>,
        l: usize,
        gamma: f64,
        goal: f64,
        rounding: f64,
    ) -> Option<(Vec<f64>, Certificate)> {
        let lane = |change: &LaneChange<f64, HALF>| super::sweep::Change { lo: change.lo[l], hi: change.hi[l] };
        let (backup, own) = (lane(&choice.backup), lane(&choice.own));
        let exact = self.planner.accuracy == Accuracy::Exact;
        let allowed = if exact { goal.max(4.0 * rounding) } else { goal };
        if !(0.5 * backup.span() <= allowed && 0.5 * own.span() <= allowed.max(goal)) {
            return None;
        }
        let shift = gamma * own.mid() / (1.0 - gamma);
        let values: Vec<f64> = choice.values.iter().map(|v| v.0[l] + shift).collect();
        let off_centre = (backup.hi - own.mid()).max(own.mid() - backup.lo);
        let size = super::linear::sup_norm(&values);
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        Some((
            values,
            Certificate {
                status: if exact { Status::Exact } else { Status::Converged },
                residual: 0.5 * backup.span() * if exact { 1.0 } else { gamma },
                suboptimality_bound: Horizon::Discount(gamma).suboptimality(backup, own, choice.gap[l], rounding),
                value_error_bound: choice.gap[l]
                    + (gamma * off_centre + rounding) / (1.0 - gamma)
                    + f64::EPSILON * (size + shift.abs()),
                sweeps: 1,
            }
            .sound(),
        ))
    }

    fn plan_one(&self, index: usize, w: &[f64]) -> Result<PlannedReward> {
        let reward = self.mdp.reward(w)?;
        let mut result = self.planned(index, self.planner.plan(self.mdp, &reward)?);
        result.feature_expectations = match (&result.policy, self.mdp.criterion()) {
            (Policy::Stationary(actions), Criterion::Discounted { .. } | Criterion::TotalReward) => {
                self.expectations(&[&pairs_of(self.mdp.pairs(), actions)?])?.pop().flatten()
            }
            _ if self.options.feature_expectations => Some(evaluate::feature_expectations(self.mdp, &result.policy)?),
            _ => None,
        };
        Ok(result)
    }

    /// A plan as one of many, without its feature expectations.
    fn planned(&self, index: usize, plan: Plan) -> PlannedReward {
        let Plan { policy, values, value, certificate } = plan;
        let values = self.options.values.then_some(values);
        PlannedReward { index, policy, value, values, feature_expectations: None, certificate }
    }

    /// μ of each policy of a block, from the cache where another reward had the same. What a policy gets does not depend on the others.
    fn expectations(&self, policies: &[&[u32]]) -> Result<Vec<Option<Vec<f64>>>> {
        if !self.options.feature_expectations {
            return Ok(vec![None; policies.len()]);
        }
        let known = |chosen: &[u32]| self.cache.get(chosen).map(|mu| mu.to_vec());
        let mut found: Vec<Option<Vec<f64>>> = policies.iter().map(|chosen| known(chosen)).collect();
        if let Some(arrivals) = &self.arrivals {
            let missing: Vec<usize> = (0..policies.len()).filter(|&i| found[i].is_none()).collect();
            for lanes in missing.chunks(LANES) {
                let open: Vec<&[u32]> = lanes.iter().map(|&i| policies[i]).collect();
                let mu = with_occupancy_buffers(self.mdp.kernel().n_entries(), |buffers| {
                    let (simd, tolerance) = (self.planner.simd, self.occupancy_tolerance);
                    arrivals.feature_expectations(simd, self.mdp, &open, tolerance, &mut buffers.lanes)
                });
                for (&i, mu) in lanes.iter().zip(mu) {
                    mu.iter().for_each(|mu| self.cache.put(policies[i], mu));
                    found[i] = mu;
                }
            }
        }
        for (chosen, mu) in policies.iter().zip(&mut found).filter(|(_, mu)| mu.is_none()) {
            // Another of this block may have had the same policy.
            *mu = known(chosen);
            if mu.is_none() {
                let computed = chosen_feature_expectations(self.mdp, chosen, self.occupancy_tolerance)?;
                self.cache.put(chosen, &computed);
                *mu = Some(computed);
            }
        }
        Ok(found)
    }
}

/// Decides when sweeping a block further is not worth while.
struct Pace<const L: usize> {
    floor: [f64; L],
    sweeps: usize,
    earlier: [f64; L],
}

impl<const L: usize> Pace<L> {
    fn new() -> Self {
        Self { floor: [0.0; L], sweeps: 0, earlier: [f64::INFINITY; L] }
    }

    /// Whether every lane is at its goal or its floor, or some lane would need too many sweeps to get there.
    fn is_over(&mut self, residual: &[f64; L], goal: &[f64; L]) -> bool {
        self.sweeps += 1;
        let target: [f64; L] = std::array::from_fn(|l| goal[l].max(self.floor[l]));
        if (0..L).all(|l| residual[l] <= target[l] || !residual[l].is_finite()) {
            return true;
        }
        if !self.sweeps.is_multiple_of(SETTLING_SWEEPS) {
            return false;
        }
        let too_slow = (0..L).any(|l| {
            let rate = (residual[l] / self.earlier[l]).ln() / SETTLING_SWEEPS as f64;
            let needed = (target[l].max(f64::MIN_POSITIVE) / residual[l]).ln() / rate;
            residual[l] > target[l] && self.earlier[l].is_finite() && !(0.0..=MAX_BLOCK_SWEEPS as f64).contains(&needed)
        });
        self.earlier = *residual;
        too_slow
    }
}

/// Largest |x| of each lane.
fn largest<T: Real, const L: usize>(v: &[Lanes<T, L>]) -> [T; L] {
    let mut most = [T::ZERO; L];
    for x in v {
        for l in 0..L {
            let size = if x.0[l] < T::ZERO { T::ZERO - x.0[l] } else { x.0[l] };
            most[l] = if size > most[l] { size } else { most[l] };
        }
    }
    most
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
    fn get(&self, chosen: &[u32]) -> Option<Arc<[f64]>> {
        let known = self.known.lock().ok()?;
        known.get(&digest(chosen)).filter(|policy| *policy.chosen == *chosen).map(|policy| policy.mu.clone())
    }

    fn put(&self, chosen: &[u32], mu: &[f64]) {
        if let Ok(mut known) = self.known.lock() {
            let entry = 4 * chosen.len() + 8 * mu.len();
            if (known.len() + 1) * entry <= CACHE_BYTES {
                known.insert(digest(chosen), KnownPolicy { chosen: chosen.into(), mu: mu.into() });
            }
        }
    }
}

fn digest(chosen: &[u32]) -> u64 {
    chosen.iter().fold(0, |h: u64, &pair| (h.rotate_left(5) ^ u64::from(pair)).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
