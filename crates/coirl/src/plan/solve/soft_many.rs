//! Soft planning for several rewards at once on one kernel, and what their choices say about the rewards.
//!
//! Values solve V = log Σ_a exp(R + γ P V) at temperature one. Newton's method on V = TV is soft policy iteration: a backup, then the
//! linear system of its policy, by BiCGSTAB for all lanes at once, by a dense factorisation of each lane where that takes long or the model
//! is small, and by [`SoftPlanner`] where it is too large for that. The derivative of choices needs the transposed system: weights
//! e(s, a) on decisions lead to
//!
//! ```text
//! Σ e(s, a) ∂Q(s, a)/∂w = Σ e(s, a) (φ(s, a) + γ Σ P(s′ | s, a) ψ(s′)),    ψ the successor features of the soft policy,
//! ```
//!
//! which is one system per reward, whatever the number of features and decisions.

use crate::error::{Error, Result, check_finite, check_length, check_positive};
use crate::model::{Criterion, Features, Mdp, Reward, StateId};
use crate::plan::evaluate;
use crate::plan::kernels::lanes::{LaneChange, LaneWork, Lanes};
use crate::plan::kernels::soft_lanes::{SoftBackup, SoftReward};
use crate::plan::policy::Policy;
use crate::plan::solve::soft::SoftPlanner;
use crate::plan::solve::soft_system::{Side, SoftSystem, Way, residuals};
use crate::simd::Simd;

/// Rewards side by side.
pub const SOFT_LANES: usize = 16;
/// How much of the residual of a Newton step's system may be left, at first; later steps are worth solving better.
const INEXACT: f64 = 0.05;
const MAX_OUTER: usize = 200;
/// Multiples of what rounding should leave that it may leave.
const UNSURE: f64 = 1e3;
/// Rows that nobody takes with a larger share of the tolerance than this are left out of products.
const NEGLIGIBLE: f64 = 1e-4;
/// States for which a dense factorisation is thought of.
const DENSE_STATES: usize = 1500;
/// Cubes of states per entry of the kernel below which a model is factorised at once.
const SMALL: f64 = 40.0;

/// A list of numbers for each lane.
type Rows = Vec<Vec<f64>>;

/// A process prepared for soft planning in lanes: discounted, or with total reward until absorption.
pub struct SoftMany<'m> {
    mdp: Mdp<'m>,
    ended: Vec<bool>,
    /// How far values may be off, relative to their size.
    tolerance: f64,
    /// Whether a dense factorisation costs less than a few sweeps.
    small: bool,
}

/// Soft plans of up to `L` rewards.
pub struct SoftBlock<'s, 'm, const L: usize> {
    many: &'s SoftMany<'m>,
    rewards: Vec<Reward>,
    lanes: SoftReward<L>,
    /// The values that were backed up last, and what they were backed up to.
    v: Vec<Lanes<f64, L>>,
    backed: Vec<Lanes<f64, L>>,
    policy: Vec<Lanes<f64, L>>,
    change: LaneChange<f64, L>,
    /// The matrices of the policies.
    system: SoftSystem<'s, L>,
}

impl<'m> SoftMany<'m> {
    /// For the criteria whose values are sums over all time; to a tolerance relative to the size of values.
    pub fn new(mdp: Mdp<'m>, tolerance: f64) -> Result<Self> {
        check_positive("tolerance", tolerance)?;
        let total = match mdp.criterion() {
            Criterion::Discounted { .. } => false,
            Criterion::TotalReward => true,
            other => {
                return Err(Error::CriterionMismatch {
                    operation: "the likelihood of soft-optimal choices",
                    criterion: other.name(),
                    hint: "use a discount below 1, or total reward until absorption",
                });
            }
        };
        let ended = (0..mdp.n_states()).map(|s| total && mdp.is_absorbing(StateId(s as u32))).collect();
        let states = mdp.n_states() as f64;
        let small = states.powi(3) < SMALL * (mdp.kernel().n_entries() as f64 + 8.0 * states);
        Ok(Self { ended, tolerance, small, mdp })
    }

    /// The process.
    pub fn mdp(&self) -> &Mdp<'m> {
        &self.mdp
    }

    /// Whether a dense factorisation costs less than a few sweeps.
    pub(crate) fn is_small(&self) -> bool {
        self.small
    }

    /// Plans for at most `L` rows of weights, from values near those wanted where there are some.
    pub fn plan<const L: usize>(&self, weights: &[f64], warm: &[Option<&[f64]>]) -> Result<SoftBlock<'_, 'm, L>> {
        let k = self.mdp.features().n_features();
        let n = weights.len() / k;
        check_length("weights of a block", n.clamp(1, L) * k, weights.len())?;
        check_length("first values of a block", n, warm.len())?;
        let rewards: Vec<Reward> = weights.chunks_exact(k).map(|w| self.mdp.reward(w)).collect::<Result<_>>()?;
        let (states, pairs) = (self.mdp.n_states(), self.mdp.pairs().len());
        let lanes = in_lanes(&rewards);
        let mut block = SoftBlock {
            many: self,
            v: vec![Lanes::ZERO; states],
            backed: vec![Lanes::ZERO; states],
            policy: vec![Lanes::ZERO; pairs],
            change: LaneChange::NONE,
            system: SoftSystem {
                kernel: self.mdp.kernel(),
                gamma: self.mdp.criterion().discount(),
                row_share: vec![Lanes::ZERO; self.mdp.kernel().n_rows()],
                n,
                way: if self.small { Way::Dense } else { Way::Krylov },
                sweeps: 0,
            },
            rewards,
            lanes,
        };
        for l in 0..L {
            let own = l.min(n - 1);
            match warm[own].filter(|values| values.len() == states) {
                Some(values) => block.v.iter_mut().zip(values).for_each(|(lanes, x)| lanes.0[l] = *x),
                None => {
                    let first = crate::plan::problem::Problem::new(&self.mdp, &block.rewards[own])?.first_values();
                    block.v.iter_mut().zip(&first).for_each(|(lanes, x)| lanes.0[l] = *x);
                }
            }
        }
        block.solve()?;
        Ok(block)
    }
}

fn in_lanes<const L: usize>(rewards: &[Reward]) -> SoftReward<L> {
    let lane = |i: usize| Lanes(std::array::from_fn(|l| rewards[l.min(rewards.len() - 1)].at(i, i)));
    match &rewards[0] {
        Reward::State(values) => SoftReward::State((0..values.len()).map(lane).collect()),
        Reward::Pair(values) => SoftReward::Pair((0..values.len()).map(lane).collect()),
    }
}

impl<const L: usize> SoftBlock<'_, '_, L> {
    fn gamma(&self) -> f64 {
        self.many.mdp.criterion().discount()
    }

    /// Number of rewards.
    pub(crate) fn n(&self) -> usize {
        self.rewards.len()
    }

    pub(crate) fn n_features(&self) -> usize {
        self.many.mdp.features().n_features()
    }

    fn backup(&mut self) {
        self.change = SoftBackup {
            kernel: self.many.mdp.kernel(),
            gamma: self.gamma(),
            reward: &self.lanes,
            ended: &self.many.ended,
            v: &self.v,
            out: &mut self.backed,
            policy: &mut self.policy,
            row_share: &mut self.system.row_share,
            negligible: NEGLIGIBLE * self.many.tolerance,
        }
        .run(Simd::Auto);
        self.system.sweeps += 1;
    }

    /// How far the values of a lane may be off, but for a constant that no choice depends on.
    fn error(&self, l: usize, change: &LaneChange<f64, L>) -> f64 {
        let gamma = self.gamma();
        if gamma < 1.0 {
            gamma / (1.0 - gamma) * change.half_span(l)
        } else {
            change.lo[l].abs().max(change.hi[l].abs())
        }
    }

    /// How far off the values of a lane may be, and what rounding may leave, both relative to their size.
    fn goal(&self) -> (f64, f64) {
        let horizon = if self.gamma() < 1.0 { 1.0 / (1.0 - self.gamma()) } else { 1.0 };
        let rounding = 16.0 * f64::EPSILON * horizon.min(1e4);
        (self.many.tolerance.max(rounding), rounding)
    }

    /// The largest error of all lanes, relative to the size of their values.
    fn relative_error(&self) -> f64 {
        let size = |l: usize| self.v.iter().fold(1.0, |most: f64, v| most.max(v.0[l].abs()));
        (0..self.n()).map(|l| self.error(l, &self.change) / size(l)).fold(0.0, f64::max)
    }

    fn solve(&mut self) -> Result<()> {
        let mut best = f64::INFINITY;
        let mut stalls = 0;
        let (goal, rounding) = self.goal();
        for _ in 0..MAX_OUTER {
            self.backup();
            let off = self.relative_error();
            if !off.is_finite() {
                return Err(Error::NotFinite { what: "soft values", index: 0, value: off });
            }
            stalls = if off > 0.7 * best { stalls + 1 } else { 0 };
            best = best.min(off);
            // What rounding leaves is not worth another step.
            if off <= goal || (stalls >= 4 && off < UNSURE * rounding) || stalls > 40 {
                return Ok(());
            }
            match self.system.way {
                Way::Krylov | Way::Sweeps => self.step_iterated()?,
                Way::Dense => self.step_dense()?,
                Way::Alone => return Ok(()),
            }
        }
        Ok(())
    }

    /// v ← v + x with x − γ P_π x = Tv − v, solved as well as the next backup can use.
    fn step_iterated(&mut self) -> Result<()> {
        let right = residuals(&self.backed, &self.v);
        // Near the end Newton's method squares errors: as much is asked of its systems.
        let off = (0..self.n()).map(|l| self.error(l, &self.change)).fold(0.0, f64::max);
        match self.system.solved(Side::Values, &right, None, off.clamp(1e-4, INEXACT)) {
            Some(x) => {
                self.v.iter_mut().zip(&x).for_each(|(v, x)| v.0 = std::array::from_fn(|l| v.0[l] + x.0[l]));
                Ok(())
            }
            None if self.v.len() <= DENSE_STATES => {
                self.system.way = Way::Dense;
                self.step_dense()
            }
            None => self.step_alone(),
        }
    }

    fn step_dense(&mut self) -> Result<()> {
        let right = residuals(&self.backed, &self.v);
        for l in 0..self.n() {
            let x = self.system.dense(&self.system.factorised(l), Side::Values, &right, l);
            self.v.iter_mut().zip(x).for_each(|(v, x)| v.0[l] += x);
        }
        for l in self.n()..L {
            let last = self.n() - 1;
            self.v.iter_mut().for_each(|v| v.0[l] = v.0[last]);
        }
        Ok(())
    }

    /// Every reward by itself.
    fn step_alone(&mut self) -> Result<()> {
        for l in 0..self.n() {
            let plan = SoftPlanner::default().plan(&self.many.mdp, &self.rewards[l])?;
            self.v.iter_mut().zip(&plan.values).for_each(|(v, x)| v.0[l] = *x);
        }
        self.system.way = Way::Alone;
        Ok(())
    }

    /// Sweeps made.
    pub fn sweeps(&self) -> usize {
        self.system.sweeps
    }

    /// V of a lane.
    pub fn values(&self, l: usize) -> Vec<f64> {
        let gamma = self.gamma();
        let shift = if gamma < 1.0 { gamma * self.change.mid(l) / (1.0 - gamma) } else { 0.0 };
        self.backed.iter().map(|v| v.0[l] + shift).collect()
    }

    /// The pairs of a state.
    pub(crate) fn pairs_of(&self, state: usize) -> std::ops::Range<usize> {
        self.many.mdp.pairs().of_state(state)
    }

    /// π of a pair.
    pub fn probability(&self, l: usize, pair: usize) -> f64 {
        self.policy[pair].0[l]
    }

    /// log π of a pair of a state.
    pub fn log_probability(&self, l: usize, state: usize, pair: usize) -> f64 {
        if self.many.ended[state] {
            return self.policy[pair].0[l].ln();
        }
        let later: f64 = expected(&self.many.mdp, pair, &self.v, l);
        self.rewards[l].at(state, pair) + self.gamma() * later - self.backed[state].0[l]
    }

    /// Σ e(s, a) ∂Q(s, a)/∂w of each lane, given its weights on pairs.
    pub fn pull_back(&mut self, weights: &[Vec<(usize, f64)>]) -> Result<Vec<Vec<f64>>> {
        self.pull_back_from(weights, &vec![None; self.n()]).map(|found| found.0)
    }

    /// [`pull_back`](Self::pull_back) from visits near those wanted where there are some, and the visits of each lane.
    pub(crate) fn pull_back_from(
        &mut self,
        weights: &[Vec<(usize, f64)>],
        near: &[Option<&[f64]>],
    ) -> Result<(Rows, Rows)> {
        check_length("weights on pairs", self.n(), weights.len())?;
        let (mdp, gamma) = (&self.many.mdp, self.gamma());
        let (kernel, features, pairs) = (mdp.kernel(), mdp.features(), mdp.pairs());
        let k = features.n_features();
        let mut gradients = vec![vec![0.0; k]; self.n()];
        let mut start = vec![Lanes::<f64, L>::ZERO; mdp.n_states()];
        for (l, (own, gradient)) in weights.iter().zip(&mut gradients).enumerate() {
            for &(pair, e) in own {
                features.add_scaled(pairs.state(pair).index(), pair, e, gradient);
                kernel.successors(pair).for_each(|(next, p)| start[next].0[l] += gamma * p * e);
            }
        }
        let mut from = start.clone();
        for (l, near) in near.iter().enumerate() {
            if let Some(near) = near.filter(|near| near.len() == from.len()) {
                from.iter_mut().zip(near).for_each(|(x, near)| x.0[l] = *near);
            }
        }
        let visits = self.visits(start, &from)?;
        for s in (0..mdp.n_states()).filter(|&s| visits[s].0.iter().any(|x| *x != 0.0)) {
            for (l, gradient) in gradients.iter_mut().enumerate() {
                let d = visits[s].0[l];
                match features {
                    Features::State { .. } => features.add_scaled(s, 0, d, gradient),
                    Features::StateAction(_) => {
                        for pair in pairs.of_state(s) {
                            features.add_scaled(s, pair, d * self.policy[pair].0[l], gradient);
                        }
                    }
                }
            }
        }
        gradients.iter().try_for_each(|gradient| check_finite("gradient of soft choices", gradient))?;
        Ok((gradients, (0..self.n()).map(|l| visits.iter().map(|x| x.0[l]).collect()).collect()))
    }

    /// ψ of a lane, state by state: what each feature adds up to from a state on. Nothing where the model is too large for it.
    pub(crate) fn successor_features(&self, l: usize) -> Option<Vec<f64>> {
        let (mdp, n) = (&self.many.mdp, self.v.len());
        let (features, pairs) = (mdp.features(), mdp.pairs());
        let k = features.n_features();
        let mut now = vec![0.0; n * k];
        for s in (0..n).filter(|&s| !self.many.ended[s]) {
            for pair in pairs.of_state(s) {
                features.add_scaled(s, pair, self.policy[pair].0[l], &mut now[s * k..(s + 1) * k]);
            }
        }
        let mut system = self.system.of_lane(l);
        let lu = (system.way == Way::Dense).then(|| system.factorised(0));
        let mut found = vec![0.0; n * k];
        for first in (0..k).step_by(L) {
            let some = (first..k.min(first + L)).collect::<Vec<_>>();
            system.n = some.len();
            let lane = |s: usize| Lanes(std::array::from_fn(|at| some.get(at).map_or(0.0, |f| now[s * k + f])));
            let right: Vec<Lanes<f64, L>> = (0..n).map(lane).collect();
            let x = match &lu {
                Some(lu) => {
                    let own: Vec<Vec<f64>> =
                        (0..some.len()).map(|at| system.dense(lu, Side::Values, &right, at)).collect();
                    (0..n).map(|s| Lanes(std::array::from_fn(|at| own.get(at).map_or(0.0, |x| x[s])))).collect()
                }
                None => system.solved(Side::Values, &right, None, self.adjoint_tolerance())?,
            };
            for s in 0..n {
                some.iter().enumerate().for_each(|(at, f)| found[s * k + f] = x[s].0[at]);
            }
        }
        Some(found)
    }

    /// ∂Q(s, a)/∂w of a pair, given ψ.
    pub(crate) fn derivative(&self, successors: &[f64], pair: usize) -> Vec<f64> {
        let mdp = &self.many.mdp;
        let k = mdp.features().n_features();
        let mut own = vec![0.0; k];
        mdp.features().add_scaled(mdp.pairs().state(pair).index(), pair, 1.0, &mut own);
        for (next, p) in mdp.kernel().successors(pair) {
            let share = self.gamma() * p;
            own.iter_mut().zip(&successors[next * k..(next + 1) * k]).for_each(|(sum, x)| *sum += share * x);
        }
        own
    }

    /// The residual of adjoint systems that gradients can bear: what is left adds up over the horizon.
    fn adjoint_tolerance(&self) -> f64 {
        let horizon = if self.gamma() < 1.0 { 1.0 / (1.0 - self.gamma()) } else { 1e3 };
        (self.many.tolerance.powf(0.75) * (10.0 / horizon).min(1.0)).clamp(1e-12, 1e-3)
    }

    /// (I − γ P_πᵀ)⁻¹ start.
    fn visits(&mut self, start: Vec<Lanes<f64, L>>, from: &[Lanes<f64, L>]) -> Result<Vec<Lanes<f64, L>>> {
        match self.system.way {
            Way::Krylov | Way::Sweeps => {
                let tolerance = self.adjoint_tolerance();
                match self.system.solved(Side::Visits, &start, Some(from), tolerance) {
                    Some(visits) => Ok(visits),
                    None => {
                        self.system.way = if start.len() <= DENSE_STATES { Way::Dense } else { Way::Alone };
                        self.visits(start, from)
                    }
                }
            }
            Way::Dense => Ok(self.visits_dense(&start)),
            Way::Alone => self.visits_alone(&start),
        }
    }

    fn visits_dense(&self, start: &[Lanes<f64, L>]) -> Vec<Lanes<f64, L>> {
        let mut visits = vec![Lanes::ZERO; start.len()];
        for l in (0..self.n()).filter(|&l| start.iter().any(|x| x.0[l] != 0.0)) {
            let d = self.system.dense(&self.system.factorised(l), Side::Visits, start, l);
            visits.iter_mut().zip(d).for_each(|(visits, d)| visits.0[l] = d);
        }
        visits
    }

    fn visits_alone(&self, start: &[Lanes<f64, L>]) -> Result<Vec<Lanes<f64, L>>> {
        let mut visits = vec![Lanes::ZERO; start.len()];
        for l in (0..self.n()).filter(|&l| start.iter().any(|x| x.0[l] != 0.0)) {
            let own: Vec<f64> = start.iter().map(|x| x.0[l]).collect();
            let policy = Policy::Stochastic(self.policy.iter().map(|p| p.0[l]).collect());
            let mdp = self.many.mdp.clone().with_signed_start(&own);
            let states = evaluate::occupancy(&mdp, &policy)?.of_states(mdp.pairs());
            (0..start.len()).for_each(|s| visits[s].0[l] = states[s]);
        }
        Ok(visits)
    }
}

/// Σ p·v over the successors of a pair in the order in which backups sum.
fn expected<const L: usize>(mdp: &Mdp<'_>, pair: usize, v: &[Lanes<f64, L>], l: usize) -> f64 {
    let row = mdp.kernel().row_of(pair);
    let (next, p) = mdp.kernel().row(row);
    let (mut even, mut odd) = (0.0, 0.0);
    if next.len() == 1 {
        return p[0] * v[next[0] as usize].0[l];
    }
    for (i, (&to, p)) in next.iter().zip(p).enumerate() {
        let term = p * v[to as usize].0[l];
        if i % 2 == 1 { odd += term } else { even += term }
    }
    even + odd
}
