//! Planning for sixteen rewards side by side, each a lane.
//!
//! Single precision with values kept near zero finds the policies; double precision then certifies them, eight at a time.

use crate::error::{Error, Result};
use crate::model::{Features, Mdp, Reward};
use crate::plan::certificate::{Certificate, Horizon, Status, rounding};
use crate::plan::kernels::lanes::{
    LaneBackup, LaneChange, LaneChoice, LaneRange, LaneRewards, LaneTies, LaneWork, Lanes, PairReward,
};
use crate::plan::kernels::sweep::Change;
use crate::plan::planner::{Accuracy, Planner, change_within};
use crate::plan::solve::exact::TIE_TOLERANCE;

/// Rewards in a block.
pub(in crate::plan) const BLOCK: usize = 16;
/// Below this many rewards a block is mostly empty lanes.
pub(in crate::plan) const SMALLEST_BLOCK: usize = 4;
/// Rewards certified together.
const HALF: usize = 8;
/// A lane that would need more sweeps than this is better served on its own.
const MAX_BLOCK_SWEEPS: usize = 600;
/// Sweeps before a rate is believed.
const SETTLING_SWEEPS: usize = 12;
/// Relative span, in units of the reward, at which exact planning in lanes stops.
const EXACT_SPAN: f64 = 1e-12;

/// Plans blocks of rewards for one model.
pub(in crate::plan) struct Blocks<'a, 'm> {
    planner: &'a Planner,
    mdp: &'a Mdp<'m>,
    /// Entries of the longest row.
    max_row: usize,
    /// The lowest pair of each row, unless every pair has a row of its own, which is of the same number.
    first_pair: Option<Vec<u32>>,
}

/// What a block found for one of its rewards.
pub(in crate::plan) enum LanePlan {
    Done {
        /// The pair of each state.
        chosen: Vec<u32>,
        values: Vec<f64>,
        certificate: Certificate,
    },
    /// Values to start from, where a lane converges too slowly.
    Start(Vec<f64>),
}

/// Rewards of a block in both precisions.
struct BlockReward {
    /// Whether rewards depend on the action; a row then has the best of its pairs.
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
    /// The share of the residual that a backup leaves, as seen well above the floor of the precision.
    rate: [f64; BLOCK],
    /// Whether one backup in double precision may be enough.
    near: [bool; BLOCK],
    /// Lanes that converge too slowly and are left to the planner for one reward.
    given_up: [bool; BLOCK],
    sweeps: usize,
}

/// What double precision has to do for half a block.
struct Half<'b> {
    reward: &'b BlockReward,
    /// Which half.
    h: usize,
    /// The half-span of a change that each lane is to get to.
    goal: [f64; HALF],
    /// As in [`Approach`].
    rate: [f64; HALF],
    given_up: [bool; HALF],
}

/// Where double precision got to.
struct Reached {
    /// The values before the last backup.
    v: Vec<Lanes<f64, HALF>>,
    choice: LaneChoice<HALF>,
    /// Whether further backups are not worth while.
    settled: bool,
    /// Passes over the kernel, with those in single precision.
    sweeps: usize,
}

impl Half<'_> {
    /// Whether nothing is left to do, or nothing that is worth while.
    fn is_done(&self, reached: &Reached) -> bool {
        reached.settled || self.waits_for_none(|l| reached.choice.backup.half_span(l) <= self.goal[l])
    }

    /// Whether a further backup would do, if steps go on as they did.
    fn is_near(&self, reached: &Reached) -> bool {
        self.waits_for_none(|l| reached.choice.backup.half_span(l) * self.rate[l] <= self.goal[l])
    }

    /// Whether all lanes but those that were given up are ready.
    fn waits_for_none(&self, ready: impl Fn(usize) -> bool) -> bool {
        (0..HALF).all(|l| self.given_up[l] || ready(l))
    }
}

impl<'a, 'm> Blocks<'a, 'm> {
    pub(in crate::plan) fn new(planner: &'a Planner, mdp: &'a Mdp<'m>) -> Self {
        let kernel = mdp.kernel();
        let max_row = kernel.layout().row_start.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        let first_pair = (kernel.n_rows() != kernel.pairs().len()).then(|| {
            let mut first = vec![0; kernel.n_rows()];
            (0..kernel.pairs().len()).rev().for_each(|pair| first[kernel.row_of(pair)] = pair as u32);
            first
        });
        Self { planner, mdp, max_row, first_pair }
    }

    /// Plans for at most [`BLOCK`] rewards, given by their weights, row after row.
    pub(in crate::plan) fn plan(&self, weights: &[f64]) -> Result<Vec<LanePlan>> {
        let n = weights.len() / self.mdp.features().n_features();
        let reward = self.reward(weights)?;
        let approach = self.approach(&reward);
        let mut halves: Vec<(Half<'_>, Reached)> =
            (0..n.div_ceil(HALF)).map(|h| self.start_half(h, &reward, &approach)).collect();
        self.look_ahead(&mut halves);
        for (half, reached) in &mut halves {
            if !half.is_done(reached) {
                let shift = std::array::from_fn(|l| reached.choice.backup.mid(l));
                *reached = self.settle(half, std::mem::take(&mut reached.choice.values), shift, reached.sweeps);
            }
        }
        let lane = |lane: usize| {
            let (half, reached) = &halves[lane / HALF];
            self.lane_plan(half, reached, lane % HALF)
        };
        Ok((0..n).map(lane).collect())
    }

    /// The rewards of all lanes; lanes beyond the last reward repeat it, or have none.
    fn reward(&self, weights: &[f64]) -> Result<BlockReward> {
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
                    LaneRewards { features: values, weights: &transposed, out: &mut out }.run(simd);
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
        let inverse = scale.map(inverse);
        let scaled = (0..full[0].len())
            .map(|i| Lanes(std::array::from_fn(|l| (full[l / HALF][i].0[l % HALF] * inverse[l]) as f32)))
            .collect();
        Ok(BlockReward { per_row, scaled, full, pairs, scale })
    }

    /// Single precision until each lane is near its tolerance or the precision's floor.
    fn approach(&self, reward: &BlockReward) -> Approach {
        let kernel = self.mdp.kernel();
        let gamma = self.mdp.criterion().discount();
        let mut v = if reward.per_row { vec![Lanes::ZERO; kernel.n_states()] } else { reward.scaled.clone() };
        // What is collected for ever is known at once; see `Problem::first_values`.
        for s in kernel.absorbing() {
            let rows = &kernel.layout().state_rows;
            let own = if reward.per_row { rows[s] as usize..rows[s + 1] as usize } else { s..s + 1 };
            let best = |l: usize| reward.scaled[own.clone()].iter().fold(f32::MIN, |best, r| best.max(r.0[l]));
            v[s] = Lanes(std::array::from_fn(|l| best(l) / (1.0 - gamma) as f32));
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
        let mut sweeps = 0;
        let mut residual = [f64::INFINITY; BLOCK];
        let mut rate = [1.0; BLOCK];
        let mut near = [false; BLOCK];
        while sweeps < MAX_BLOCK_SWEEPS {
            let backup = LaneBackup {
                kernel,
                gamma: gamma as f32,
                reward: &reward.scaled,
                reward_per_row: reward.per_row,
                shift,
                v: &v,
                out: &mut out,
                chosen: None,
            };
            let change = backup.run(self.planner.simd);
            std::mem::swap(&mut v, &mut out);
            shift = std::array::from_fn(|l| change.mid(l));
            if sweeps.is_multiple_of(8) {
                pace.floor = largest(&v).map(|x| 3.0 * f64::from(f32::EPSILON) * f64::from(x));
            }
            sweeps += 1;
            let before = residual;
            residual = std::array::from_fn(|l| f64::from(change.half_span(l)));
            for l in (0..BLOCK).filter(|&l| residual[l] > 20.0 * pace.floor[l] && before[l].is_finite()) {
                rate[l] = residual[l] / before[l];
            }
            // A backup in double precision follows, and a look at what another would change; rounding errors shrink as residuals do.
            let noise = |l: usize| 0.35 * pace.floor[l] / (1.0 - rate[l]).max(0.0);
            near = std::array::from_fn(|l| {
                residual[l] <= goal[l] || (residual[l] * rate[l] + noise(l)) * rate[l] <= 0.8 * goal[l]
            });
            if (0..BLOCK).all(|l| near[l] || pace.given_up[l]) || pace.is_over(&residual, &goal) {
                break;
            }
        }
        // What hardly moves near the floor of the precision is not slow, but done with it.
        let given_up = std::array::from_fn(|l| pace.given_up[l] && residual[l] > 20.0 * pace.floor[l]);
        Approach { values: v, rate, near, given_up, sweeps }
    }

    /// Double precision from where single precision got to. Under a tolerance one backup is often enough.
    fn start_half<'b>(&self, h: usize, reward: &'b BlockReward, start: &Approach) -> (Half<'b>, Reached) {
        let lane = |l: usize| h * HALF + l;
        let gamma = self.mdp.criterion().discount();
        let (exact, goal) = match self.planner.accuracy {
            Accuracy::Exact => (true, std::array::from_fn(|l| 0.5 * EXACT_SPAN * reward.scale[lane(l)])),
            Accuracy::Tolerance(tolerance) => (false, [change_within(tolerance, gamma); HALF]),
        };
        let rate = std::array::from_fn(|l| start.rate[lane(l)]);
        let given_up = std::array::from_fn(|l| start.given_up[lane(l)]);
        let half = Half { reward, h, goal, rate, given_up };
        let value = |x: &Lanes<f32, BLOCK>| std::array::from_fn(|l| f64::from(x.0[lane(l)]) * reward.scale[lane(l)]);
        let v: Vec<Lanes<f64, HALF>> = start.values.iter().map(|x| Lanes(value(x))).collect();
        let reached = match !exact && half.waits_for_none(|l| start.near[lane(l)]) {
            true => self.choose(&half, v, start.sweeps),
            false => self.settle(&half, v, [0.0; HALF], start.sweeps),
        };
        (half, reached)
    }

    /// One backup; where wanted, it says which rows are best.
    fn backup(
        &self,
        half: &Half<'_>,
        shift: [f64; HALF],
        v: &[Lanes<f64, HALF>],
        out: &mut [Lanes<f64, HALF>],
        chosen: Option<&mut [[u32; HALF]]>,
    ) -> LaneChange<f64, HALF> {
        let (kernel, gamma) = (self.mdp.kernel(), self.mdp.criterion().discount());
        let (reward, reward_per_row) = (&half.reward.full[half.h][..], half.reward.per_row);
        LaneBackup { kernel, gamma, reward, reward_per_row, shift, v, out, chosen }.run(self.planner.simd)
    }

    /// A backup with the lowest best pair of the first best row of every state.
    fn choose(&self, half: &Half<'_>, v: Vec<Lanes<f64, HALF>>, sweeps: usize) -> Reached {
        let (mut values, mut chosen) = (vec![Lanes::ZERO; v.len()], vec![[0; HALF]; v.len()]);
        let backup = self.backup(half, [0.0; HALF], &v, &mut values, Some(&mut chosen));
        if let Some(first_pair) = &self.first_pair {
            let kernel = self.mdp.kernel();
            let Half { reward, h, .. } = half;
            for (s, rows) in chosen.iter_mut().enumerate() {
                for (l, row) in rows.iter_mut().enumerate() {
                    let first = first_pair[*row as usize];
                    let fits = |&pair: &u32| {
                        kernel.row_of(pair as usize) == *row as usize
                            && reward.pairs[*h][pair as usize].0[l] == reward.full[*h][*row as usize].0[l]
                    };
                    *row = match reward.per_row {
                        false => first,
                        true => (first..kernel.pairs().of_state(s).end as u32).find(fits).unwrap_or(first),
                    };
                }
            }
        }
        let choice = LaneChoice { chosen, values, backup, own: backup, gap: [0.0; HALF] };
        Reached { v, choice, settled: false, sweeps: sweeps + 1 }
    }

    /// Looks at what a further backup would change, without doing it: where `d` is what the last one changed, a backup of its values
    /// changes them by γ times an average of `d` over a row. Single precision is enough for that, for all lanes at once.
    fn look_ahead(&self, halves: &mut [(Half<'_>, Reached)]) {
        let done = halves.iter().all(|(half, reached)| half.is_done(reached));
        if done || !halves.iter().all(|(half, reached)| half.is_near(reached)) {
            return;
        }
        let kernel = self.mdp.kernel();
        let mut x = vec![Lanes::<f32, BLOCK>::ZERO; kernel.n_states()];
        for (half, Reached { v, choice, .. }) in &*halves {
            let mid: [f64; HALF] = std::array::from_fn(|l| choice.backup.mid(l));
            let inverse: [f64; HALF] = std::array::from_fn(|l| inverse(choice.backup.half_span(l)));
            for ((x, v), new) in x.iter_mut().zip(v).zip(&choice.values) {
                for l in 0..HALF {
                    x.0[half.h * HALF + l] = ((new.0[l] - v.0[l] - mid[l]) * inverse[l]) as f32;
                }
            }
        }
        let range = LaneRange { kernel, x: &x }.run(self.planner.simd);
        let rounding = (self.max_row + 4) as f64 * f64::from(f32::EPSILON);
        for (half, reached) in halves {
            let old = reached.choice.backup;
            // No average lies outside of what is averaged.
            let at = |l: usize, x: f64| (old.mid(l) + old.half_span(l) * x).max(old.lo[l]).min(old.hi[l]);
            let mut new = old;
            // Spans below all normal numbers were not looked at.
            for l in (0..HALF).filter(|&l| inverse(old.half_span(l)) > 0.0) {
                new.lo[l] = at(l, f64::from(range.lo[half.h * HALF + l]) - rounding);
                new.hi[l] = at(l, f64::from(range.hi[half.h * HALF + l]) + rounding);
            }
            (reached.choice.backup, reached.choice.own) = (new, new);
            reached.sweeps += 1;
        }
    }

    /// Backups in double precision to the goal, then the choice.
    fn settle(
        &self,
        half: &Half<'_>,
        mut v: Vec<Lanes<f64, HALF>>,
        mut shift: [f64; HALF],
        mut sweeps: usize,
    ) -> Reached {
        let most_sweeps = sweeps + MAX_BLOCK_SWEEPS;
        let mut out = v.clone();
        let mut pace = Pace { given_up: half.given_up, ..Pace::new() };
        loop {
            let change = self.backup(half, shift, &v, &mut out, None);
            std::mem::swap(&mut v, &mut out);
            sweeps += 1;
            shift = std::array::from_fn(|l| change.mid(l));
            let residual: [f64; HALF] = std::array::from_fn(|l| change.half_span(l));
            let over = pace.is_over(&residual, &half.goal) || sweeps >= most_sweeps;
            if self.planner.accuracy == Accuracy::Exact {
                if over {
                    return self.choose_with_ties(half, v, shift, sweeps);
                }
            } else if over || half.waits_for_none(|l| residual[l] * half.rate[l] <= 0.8 * half.goal[l]) {
                // The pass that chooses is a backup too: it may do the last step, if steps go on as they did.
                let reached = self.choose(half, v, sweeps);
                if over || half.is_done(&reached) {
                    return Reached { settled: true, ..reached };
                }
                (v, sweeps) = (reached.v, reached.sweeps);
            }
        }
    }

    /// The choice of exact planning, where the last backup changed all values by about `shift`.
    fn choose_with_ties(
        &self,
        half: &Half<'_>,
        mut v: Vec<Lanes<f64, HALF>>,
        shift: [f64; HALF],
        sweeps: usize,
    ) -> Reached {
        let (kernel, gamma) = (self.mdp.kernel(), self.mdp.criterion().discount());
        // Ties are a matter of the true values, which are a constant away.
        v.iter_mut().for_each(|x| (0..HALF).for_each(|l| x.0[l] += shift[l] / (1.0 - gamma)));
        let reward = match half.reward.per_row {
            false => PairReward::State(&half.reward.full[half.h]),
            true => PairReward::Pair(&half.reward.pairs[half.h]),
        };
        let choose = |tie| LaneTies { kernel, gamma, reward, tie, v: &v }.run(self.planner.simd);
        let (_, largest) = choose([0.0; HALF]);
        let (choice, _) = choose(largest.map(|q| TIE_TOLERANCE * q));
        Reached { v, choice, settled: true, sweeps: sweeps + 2 }
    }

    /// The values and certificate of a lane, or where to start from where they are not good enough.
    fn lane_plan(&self, half: &Half<'_>, reached: &Reached, l: usize) -> LanePlan {
        let gamma = self.mdp.criterion().discount();
        let Reached { v, choice, sweeps, .. } = reached;
        let exact = self.planner.accuracy == Accuracy::Exact;
        let lane = |change: &LaneChange<f64, HALF>| Change { lo: change.lo[l], hi: change.hi[l] };
        let (backup, own) = (lane(&choice.backup), lane(&choice.own));
        let shift = gamma * own.mid() / (1.0 - gamma);
        // Rows sum to one up to rounding, by which the constant counts too.
        let largest = v.iter().fold(0.0, |most: f64, x| most.max(x.0[l].abs()));
        let rounding = rounding(self.max_row, largest + half.reward.scale[half.h * HALF + l] + shift.abs());
        let goal = half.goal[l];
        let allowed = if exact { goal.max(4.0 * rounding) } else { goal };
        let values: Vec<f64> = choice.values.iter().map(|v| v.0[l] + shift).collect();
        let good = 0.5 * backup.span() <= allowed && 0.5 * own.span() <= allowed;
        if !good || values.iter().any(|v| !v.is_finite()) {
            return LanePlan::Start(v.iter().map(|x| x.0[l]).collect());
        }
        let off_centre = (backup.hi - own.mid()).max(own.mid() - backup.lo);
        let certificate = Certificate {
            status: if exact { Status::Exact } else { Status::Converged },
            residual: 0.5 * backup.span() * if exact { 1.0 } else { gamma },
            suboptimality_bound: Horizon::Discount(gamma).suboptimality(backup, own, choice.gap[l], rounding),
            value_error_bound: choice.gap[l]
                + (gamma * off_centre + rounding) / (1.0 - gamma)
                + f64::EPSILON * (crate::plan::kernels::linear::sup_norm(&values) + shift.abs()),
            sweeps: *sweeps,
        };
        let chosen = choice.chosen.iter().map(|c| c[l]).collect();
        LanePlan::Done { chosen, values, certificate: certificate.sound() }
    }
}

/// Decides when sweeping a block further is not worth while.
struct Pace<const L: usize> {
    floor: [f64; L],
    sweeps: usize,
    earlier: [f64; L],
    /// Lanes that would need too many sweeps.
    given_up: [bool; L],
}

impl<const L: usize> Pace<L> {
    fn new() -> Self {
        Self { floor: [0.0; L], sweeps: 0, earlier: [f64::INFINITY; L], given_up: [false; L] }
    }

    /// Whether every lane is at its goal or its floor, or would need too many sweeps to get there.
    fn is_over(&mut self, residual: &[f64; L], goal: &[f64; L]) -> bool {
        self.sweeps += 1;
        let target: [f64; L] = std::array::from_fn(|l| goal[l].max(self.floor[l]));
        let open = |l: usize| residual[l] > target[l] && residual[l].is_finite();
        if self.sweeps.is_multiple_of(SETTLING_SWEEPS) {
            for l in (0..L).filter(|&l| open(l) && self.earlier[l].is_finite()) {
                let rate = (residual[l] / self.earlier[l]).ln() / SETTLING_SWEEPS as f64;
                let needed = (target[l].max(f64::MIN_POSITIVE) / residual[l]).ln() / rate;
                self.given_up[l] |= !(0.0..=MAX_BLOCK_SWEEPS as f64).contains(&needed);
            }
            self.earlier = *residual;
        }
        (0..L).all(|l| !open(l) || self.given_up[l])
    }
}

/// 1 / x, or nothing where that is too much.
fn inverse(x: f64) -> f64 {
    if x > f64::MIN_POSITIVE { 1.0 / x } else { 0.0 }
}

/// Largest |x| of each lane.
fn largest(v: &[Lanes<f32, BLOCK>]) -> [f32; BLOCK] {
    let larger = |most: [f32; BLOCK], x: &Lanes<f32, BLOCK>| std::array::from_fn(|l| most[l].max(x.0[l].abs()));
    v.iter().fold([0.0; BLOCK], larger)
}
