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
use crate::plan::kernels::soft_lanes::{SoftBackup, SoftPush, SoftReward, SoftSweep};
use crate::plan::policy::Policy;
use crate::plan::solve::soft::SoftPlanner;
use crate::simd::Simd;
use faer::Mat;
use faer::linalg::solvers::{PartialPivLu, Solve};

/// Rewards side by side.
pub const SOFT_LANES: usize = 8;
/// How much of the residual of a Newton step's system may be left, at first; later steps are worth solving better.
const INEXACT: f64 = 0.05;
const MAX_OUTER: usize = 200;
/// Products with the matrix of a policy after which another way is taken.
const MAX_PRODUCTS: usize = 120;
/// Sweeps after which a dense factorisation, or the planner for one reward, takes over.
const MAX_SWEEPS: usize = 2000;
/// States for which a dense factorisation is thought of.
const DENSE_STATES: usize = 1500;
/// Cubes of states per entry of the kernel below which a model is factorised at once.
const SMALL: f64 = 40.0;

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
    row_share: Vec<Lanes<f64, L>>,
    change: LaneChange<f64, L>,
    way: Way,
    sweeps: usize,
}

/// How linear systems are solved.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Krylov,
    Sweeps,
    Dense,
    Alone,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Values,
    Visits,
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
            row_share: vec![Lanes::ZERO; self.mdp.kernel().n_rows()],
            change: LaneChange::NONE,
            way: if self.small { Way::Dense } else { Way::Krylov },
            sweeps: 0,
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

    fn n(&self) -> usize {
        self.rewards.len()
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
            row_share: &mut self.row_share,
        }
        .run(Simd::Auto);
        self.sweeps += 1;
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

    fn goal(&self, l: usize) -> f64 {
        let largest = self.v.iter().fold(1.0, |most: f64, v| most.max(v.0[l].abs()));
        let horizon = if self.gamma() < 1.0 { 1.0 / (1.0 - self.gamma()) } else { 1.0 };
        (self.many.tolerance * largest).max(16.0 * f64::EPSILON * largest * horizon.min(1e4))
    }

    fn solve(&mut self) -> Result<()> {
        let mut best = f64::INFINITY;
        let mut stalls = 0;
        for _ in 0..MAX_OUTER {
            self.backup();
            let off = (0..self.n()).map(|l| self.error(l, &self.change) / self.goal(l)).fold(0.0, f64::max);
            if !off.is_finite() {
                return Err(Error::NotFinite { what: "soft values", index: 0, value: off });
            }
            stalls = if off > 0.7 * best { stalls + 1 } else { 0 };
            best = best.min(off);
            // What rounding leaves is not worth another step.
            if off <= 1.0 || (stalls >= 4 && off < 1e3) || stalls > 40 {
                return Ok(());
            }
            match self.way {
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
        match self.solved(Side::Values, &right, off.clamp(1e-4, INEXACT)) {
            Some(x) => {
                self.v.iter_mut().zip(&x).for_each(|(v, x)| v.0 = std::array::from_fn(|l| v.0[l] + x.0[l]));
                Ok(())
            }
            None if self.v.len() <= DENSE_STATES => {
                self.way = Way::Dense;
                self.step_dense()
            }
            None => self.step_alone(),
        }
    }

    /// γ P_π x, or γ P_πᵀ x.
    fn product(&mut self, side: Side, x: &[Lanes<f64, L>], zero: &[Lanes<f64, L>], out: &mut [Lanes<f64, L>]) {
        let (kernel, gamma, row_share) = (self.many.mdp.kernel(), self.gamma(), &self.row_share[..]);
        match side {
            Side::Values => drop(SoftSweep { kernel, gamma, row_share, base: zero, x, out }.run(Simd::Auto)),
            Side::Visits => SoftPush { kernel, gamma, row_share, x, out }.run(Simd::Auto),
        }
        self.sweeps += 1;
    }

    /// (I − γ P_π)⁻¹ b, or its transpose, by whatever gets there: Krylov steps, or sweeps where these break down, as they do where
    /// nothing is left to chance.
    fn solved(&mut self, side: Side, b: &[Lanes<f64, L>], tolerance: f64) -> Option<Vec<Lanes<f64, L>>> {
        if self.way == Way::Krylov {
            if let Some(x) = self.krylov(side, b, tolerance) {
                return Some(x);
            }
            self.way = Way::Sweeps;
        }
        self.swept(side, b, tolerance)
    }

    /// (I − γ P_π)⁻¹ b, or its transpose, as b + γ P_π (b + γ P_π (b + …)); nothing where that takes long.
    fn swept(&mut self, side: Side, b: &[Lanes<f64, L>], tolerance: f64) -> Option<Vec<Lanes<f64, L>>> {
        let mut x = b.to_vec();
        let mut next = vec![Lanes::ZERO; b.len()];
        let zero = next.clone();
        let size = dots(b, b);
        for _ in 0..MAX_SWEEPS {
            self.product(side, &x, &zero, &mut next);
            next.iter_mut().zip(b).for_each(|(x, b)| x.0 = std::array::from_fn(|l| x.0[l] + b.0[l]));
            let change = residuals(&next, &x);
            let left = dots(&change, &change);
            std::mem::swap(&mut x, &mut next);
            // What is left shrinks by γ at least, so that this is the residual of the last but one.
            if (0..self.n()).all(|l| left[l] <= tolerance * tolerance * size[l]) {
                return Some(x);
            }
        }
        None
    }

    /// (I − γ P_π)⁻¹ b, or its transpose, by BiCGSTAB (van der Vorst 1992) in every lane, to a residual relative to b; nothing where that
    /// takes long.
    fn krylov(&mut self, side: Side, b: &[Lanes<f64, L>], tolerance: f64) -> Option<Vec<Lanes<f64, L>>> {
        let n = b.len();
        let zero = vec![Lanes::ZERO; n];
        // The right-hand side itself is as good a start as any, and right where nothing follows.
        let mut x = b.to_vec();
        let mut v = vec![Lanes::ZERO; n];
        self.product(side, &x, &zero, &mut v);
        let mut r = v.clone();
        let (r0, mut p, mut t) = (r.clone(), r.clone(), vec![Lanes::ZERO; n]);
        let mut rho = dots(&r0, &r);
        let size = dots(b, b);
        let goal: [f64; L] = std::array::from_fn(|l| tolerance * tolerance * size[l]);
        let mut left = dots(&r, &r);
        for _ in 0..MAX_PRODUCTS / 2 {
            let open: [bool; L] = std::array::from_fn(|l| left[l] > goal[l] && l < self.n());
            if !open.contains(&true) {
                return Some(x);
            }
            self.product(side, &p, &zero, &mut v);
            v.iter_mut().zip(&p).for_each(|(v, p)| v.0 = std::array::from_fn(|l| p.0[l] - v.0[l]));
            let along = dots(&r0, &v);
            let alpha: [f64; L] = std::array::from_fn(|l| if open[l] { rho[l] / along[l] } else { 0.0 });
            r.iter_mut().zip(&v).for_each(|(r, v)| r.0 = std::array::from_fn(|l| r.0[l] - alpha[l] * v.0[l]));
            self.product(side, &r, &zero, &mut t);
            t.iter_mut().zip(&r).for_each(|(t, r)| t.0 = std::array::from_fn(|l| r.0[l] - t.0[l]));
            let (tt, tr) = (dots(&t, &t), dots(&t, &r));
            let omega: [f64; L] = std::array::from_fn(|l| if open[l] && tt[l] > 0.0 { tr[l] / tt[l] } else { 0.0 });
            for i in 0..n {
                x[i].0 = std::array::from_fn(|l| x[i].0[l] + alpha[l] * p[i].0[l] + omega[l] * r[i].0[l]);
                r[i].0 = std::array::from_fn(|l| r[i].0[l] - omega[l] * t[i].0[l]);
            }
            let (next, now) = (dots(&r0, &r), dots(&r, &r));
            let beta: [f64; L] =
                std::array::from_fn(|l| if open[l] { next[l] / rho[l] * (alpha[l] / omega[l]) } else { 0.0 });
            let done = |l: usize| !open[l] || now[l] <= goal[l];
            if (0..L).any(|l| !(now[l].is_finite() && (done(l) || beta[l].is_finite()))) {
                return None;
            }
            for i in 0..n {
                p[i].0 = std::array::from_fn(|l| {
                    if done(l) { p[i].0[l] } else { r[i].0[l] + beta[l] * (p[i].0[l] - omega[l] * v[i].0[l]) }
                });
            }
            left = std::array::from_fn(|l| if open[l] { now[l] } else { left[l] });
            rho = next;
        }
        None
    }

    fn step_dense(&mut self) -> Result<()> {
        for l in 0..self.n() {
            let lu = self.factorised(l);
            let right = Mat::from_fn(self.v.len(), 1, |s, _| self.backed[s].0[l] - self.v[s].0[l]);
            let x = lu.solve(&right);
            (0..self.v.len()).for_each(|s| self.v[s].0[l] += x[(s, 0)]);
        }
        for l in self.n()..L {
            let last = self.n() - 1;
            self.v.iter_mut().for_each(|v| v.0[l] = v.0[last]);
        }
        Ok(())
    }

    /// I − γ P_π of a lane.
    fn factorised(&self, l: usize) -> PartialPivLu<f64> {
        let (kernel, gamma, n) = (self.many.mdp.kernel(), self.gamma(), self.v.len());
        let mut system = Mat::<f64>::identity(n, n);
        for s in 0..n {
            for row in kernel.layout().state_rows[s] as usize..kernel.layout().state_rows[s + 1] as usize {
                let (next, p) = kernel.row(row);
                let share = gamma * self.row_share[row].0[l];
                next.iter().zip(p).for_each(|(&to, p)| system[(s, to as usize)] -= share * p);
            }
        }
        system.partial_piv_lu()
    }

    /// Every reward by itself.
    fn step_alone(&mut self) -> Result<()> {
        for l in 0..self.n() {
            let plan = SoftPlanner::default().plan(&self.many.mdp, &self.rewards[l])?;
            self.v.iter_mut().zip(&plan.values).for_each(|(v, x)| v.0[l] = *x);
        }
        self.way = Way::Alone;
        Ok(())
    }

    /// Sweeps made.
    pub fn sweeps(&self) -> usize {
        self.sweeps
    }

    /// V of a lane.
    pub fn values(&self, l: usize) -> Vec<f64> {
        let gamma = self.gamma();
        let shift = if gamma < 1.0 { gamma * self.change.mid(l) / (1.0 - gamma) } else { 0.0 };
        self.backed.iter().map(|v| v.0[l] + shift).collect()
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
        let visits = self.visits(start)?;
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
        Ok(gradients)
    }

    /// (I − γ P_πᵀ)⁻¹ start.
    fn visits(&mut self, start: Vec<Lanes<f64, L>>) -> Result<Vec<Lanes<f64, L>>> {
        match self.way {
            Way::Krylov | Way::Sweeps => match self.solved(Side::Visits, &start, 0.1 * self.many.tolerance) {
                Some(visits) => Ok(visits),
                None => {
                    self.way = if start.len() <= DENSE_STATES { Way::Dense } else { Way::Alone };
                    self.visits(start)
                }
            },
            Way::Dense => Ok(self.visits_dense(&start)),
            Way::Alone => self.visits_alone(&start),
        }
    }

    fn visits_dense(&self, start: &[Lanes<f64, L>]) -> Vec<Lanes<f64, L>> {
        let mut visits = vec![Lanes::ZERO; start.len()];
        for l in (0..self.n()).filter(|&l| start.iter().any(|x| x.0[l] != 0.0)) {
            let right = Mat::from_fn(start.len(), 1, |s, _| start[s].0[l]);
            let d = self.factorised(l).solve_transpose(&right);
            (0..start.len()).for_each(|s| visits[s].0[l] = d[(s, 0)]);
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

/// Σ a·b of each lane.
fn dots<const L: usize>(a: &[Lanes<f64, L>], b: &[Lanes<f64, L>]) -> [f64; L] {
    a.iter().zip(b).fold([0.0; L], |sum, (a, b)| std::array::from_fn(|l| sum[l] + a.0[l] * b.0[l]))
}

fn residuals<const L: usize>(new: &[Lanes<f64, L>], old: &[Lanes<f64, L>]) -> Vec<Lanes<f64, L>> {
    new.iter().zip(old).map(|(new, old)| Lanes(std::array::from_fn(|l| new.0[l] - old.0[l]))).collect()
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
