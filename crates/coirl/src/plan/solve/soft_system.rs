//! The linear systems of soft policies, several side by side: (I − γ P_π) x = b for values and (I − γ P_π)ᵀ x = b for visits.
//!
//! BiCGSTAB (van der Vorst 1992) in every lane, sweeps where it breaks down, as it does where nothing is left to chance, and a dense
//! factorisation of each lane where both take long or the model is small. A lane that is done stands still, so that no lane depends on
//! how many steps its neighbours take.

use crate::model::Kernel;
use crate::plan::kernels::lanes::{LaneWork, Lanes};
use crate::plan::kernels::real::Real;
use crate::plan::kernels::soft_lanes::{SoftPush, SoftSweep};
use crate::simd::Simd;
use faer::Mat;
use faer::linalg::solvers::{PartialPivLu, Solve};

/// Products with the matrix of a policy after which another way is taken.
const MAX_PRODUCTS: usize = 120;
/// Sweeps after which a dense factorisation, or the planner for one reward, takes over.
const MAX_SWEEPS: usize = 2000;
/// Corrections after which a system is given up, and the residual that single precision is asked for.
const MAX_REFINEMENTS: usize = 12;
const SINGLE: f64 = 1e-4;

/// How linear systems are solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Way {
    Krylov,
    Sweeps,
    Dense,
    Alone,
}

/// Which system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Side {
    Values,
    Visits,
}

/// The matrices of `L` policies on one kernel, `n` of which are asked for.
pub(super) struct SoftSystem<'m, const L: usize> {
    pub(super) kernel: &'m Kernel,
    pub(super) gamma: f64,
    /// Σ π of the pairs that share a row.
    pub(super) row_share: Vec<Lanes<f64, L>>,
    pub(super) n: usize,
    pub(super) way: Way,
    pub(super) sweeps: usize,
}

/// The matrices of several soft policies over one kernel, in one precision.
struct Matrix<'s, T, const L: usize> {
    kernel: &'s Kernel,
    gamma: T,
    row_share: &'s [Lanes<T, L>],
    taken: &'s [bool],
    side: Side,
    n: usize,
    products: usize,
}

impl<T: Real, const L: usize> Matrix<'_, T, L> {
    /// b − (I − γ P_π) x, or its transpose.
    fn left(&mut self, b: &[Lanes<T, L>], x: &[Lanes<T, L>]) -> Vec<Lanes<T, L>> {
        let mut out = vec![Lanes::ZERO; b.len()];
        self.product(x, &mut out);
        for ((out, b), x) in out.iter_mut().zip(b).zip(x) {
            out.0 = std::array::from_fn(|l| out.0[l] + b.0[l] - x.0[l]);
        }
        out
    }

    /// γ P_π x, or γ P_πᵀ x.
    fn product(&mut self, x: &[Lanes<T, L>], out: &mut [Lanes<T, L>]) {
        let (kernel, gamma, row_share, taken) = (self.kernel, self.gamma, self.row_share, self.taken);
        match self.side {
            Side::Values => SoftSweep { kernel, gamma, row_share, taken, x, out }.run(Simd::Auto),
            Side::Visits => SoftPush { kernel, gamma, row_share, taken, x, out }.run(Simd::Auto),
        }
        self.products += 1;
    }

    /// (I − γ P_π)⁻¹ b, or its transpose, as b + γ P_π (b + γ P_π (b + …)); nothing where that takes long.
    fn swept(&mut self, b: &[Lanes<T, L>], start: &[Lanes<T, L>], tolerance: f64) -> Option<Vec<Lanes<T, L>>> {
        let mut x = start.to_vec();
        let mut next = vec![Lanes::ZERO; b.len()];
        let size = dots(b, b);
        for _ in 0..MAX_SWEEPS {
            self.product(&x, &mut next);
            next.iter_mut().zip(b).for_each(|(x, b)| x.0 = std::array::from_fn(|l| x.0[l] + b.0[l]));
            let change = residuals(&next, &x);
            let left = dots(&change, &change);
            std::mem::swap(&mut x, &mut next);
            // What is left shrinks by γ at least, so that this is the residual of the last but one.
            if (0..self.n).all(|l| left[l] <= tolerance * tolerance * size[l]) {
                return Some(x);
            }
        }
        None
    }

    /// (I − γ P_π)⁻¹ b, or its transpose, by BiCGSTAB in every lane, until the squared residual of each lane is below its goal; nothing
    /// where that takes long.
    fn krylov(&mut self, b: &[Lanes<T, L>], goal: &[f64; L]) -> Option<Vec<Lanes<T, L>>> {
        let n = b.len();
        // The right-hand side itself is as good a start as any, and right where nothing follows.
        let mut x = b.to_vec();
        let mut v = vec![Lanes::ZERO; n];
        self.product(&x, &mut v);
        let mut r = v.clone();
        let (r0, mut p, mut t) = (r.clone(), r.clone(), vec![Lanes::ZERO; n]);
        let mut rho = dots(&r0, &r);
        let mut left = dots(&r, &r);
        for _ in 0..MAX_PRODUCTS / 2 {
            let open: [bool; L] = std::array::from_fn(|l| left[l] > goal[l] && l < self.n);
            if !open.contains(&true) {
                return Some(x);
            }
            self.product(&p, &mut v);
            v.iter_mut().zip(&p).for_each(|(v, p)| v.0 = std::array::from_fn(|l| p.0[l] - v.0[l]));
            let along = dots(&r0, &v);
            let alpha = only::<T, L>(&open, |l| rho[l] / along[l]);
            r.iter_mut().zip(&v).for_each(|(r, v)| r.0 = std::array::from_fn(|l| r.0[l] - alpha[l] * v.0[l]));
            self.product(&r, &mut t);
            t.iter_mut().zip(&r).for_each(|(t, r)| t.0 = std::array::from_fn(|l| r.0[l] - t.0[l]));
            let (tt, tr) = (dots(&t, &t), dots(&t, &r));
            let omega = only::<T, L>(&open, |l| if tt[l] > 0.0 { tr[l] / tt[l] } else { 0.0 });
            for i in 0..n {
                x[i].0 = std::array::from_fn(|l| x[i].0[l] + alpha[l] * p[i].0[l] + omega[l] * r[i].0[l]);
                r[i].0 = std::array::from_fn(|l| r[i].0[l] - omega[l] * t[i].0[l]);
            }
            let (next, now) = (dots(&r0, &r), dots(&r, &r));
            let beta = only::<T, L>(&open, |l| next[l] / rho[l] * (alpha[l].into() / omega[l].into()));
            let done: [bool; L] = std::array::from_fn(|l| !open[l] || now[l] <= goal[l]);
            if (0..L).any(|l| !(now[l].is_finite() && (done[l] || beta[l].into().is_finite()))) {
                return None;
            }
            for i in 0..n {
                p[i].0 = std::array::from_fn(|l| {
                    if done[l] { p[i].0[l] } else { r[i].0[l] + beta[l] * (p[i].0[l] - omega[l] * v[i].0[l]) }
                });
            }
            left = std::array::from_fn(|l| if open[l] { now[l] } else { left[l] });
            rho = next;
        }
        None
    }
}

/// A number for each lane that is open, zero for the others.
fn only<T: Real, const L: usize>(open: &[bool; L], of: impl Fn(usize) -> f64) -> [T; L] {
    std::array::from_fn(|l| if open[l] { T::nearest(of(l)) } else { T::ZERO })
}

impl<const L: usize> SoftSystem<'_, L> {
    /// The policy of one lane in all lanes.
    pub(super) fn of_lane(&self, l: usize) -> Self {
        let row_share = self.row_share.iter().map(|share| Lanes([share.0[l]; L])).collect();
        Self { row_share, n: L, sweeps: 0, ..*self }
    }

    /// (I − γ P_π)⁻¹ b, or its transpose, to a residual relative to b, from a start near the answer where there is one. Corrections are
    /// computed in single precision from residuals in double precision; sweeps where that breaks down, nothing where these take long.
    pub(super) fn solved(
        &mut self,
        side: Side,
        b: &[Lanes<f64, L>],
        start: Option<&[Lanes<f64, L>]>,
        tolerance: f64,
    ) -> Option<Vec<Lanes<f64, L>>> {
        if self.way == Way::Krylov {
            if let Some(x) = self.refined(side, b, start, tolerance) {
                return Some(x);
            }
            self.way = Way::Sweeps;
        }
        let taken = self.taken();
        let mut matrix = self.matrix(side, &taken);
        let x = matrix.swept(b, start.unwrap_or(b), tolerance);
        self.sweeps += matrix.products;
        x
    }

    /// The rows that any policy takes.
    fn taken(&self) -> Vec<bool> {
        self.row_share.iter().map(|share| share.0.iter().any(|x| *x != 0.0)).collect()
    }

    fn matrix<'s>(&'s self, side: Side, taken: &'s [bool]) -> Matrix<'s, f64, L> {
        let Self { kernel, gamma, row_share, n, .. } = self;
        Matrix { kernel, gamma: *gamma, row_share, taken, side, n: *n, products: 0 }
    }

    fn refined(
        &mut self,
        side: Side,
        b: &[Lanes<f64, L>],
        start: Option<&[Lanes<f64, L>]>,
        tolerance: f64,
    ) -> Option<Vec<Lanes<f64, L>>> {
        let size = dots(b, b);
        let goal: [f64; L] = std::array::from_fn(|l| tolerance * tolerance * size[l]);
        let shares: Vec<Lanes<f32, L>> = rounded(&self.row_share);
        let taken = self.taken();
        let (mut exact, mut products) = (self.matrix(side, &taken), 0);
        let mut x = start.map_or_else(|| vec![Lanes::ZERO; b.len()], <[_]>::to_vec);
        let mut left = match start {
            Some(_) => exact.left(b, &x),
            None => b.to_vec(),
        };
        let mut found = None;
        for _ in 0..MAX_REFINEMENTS {
            let now = dots(&left, &left);
            let (kernel, gamma, row_share) = (self.kernel, self.gamma as f32, &shares[..]);
            let mut single = Matrix { kernel, gamma, row_share, taken: &taken, side, n: self.n, products: 0 };
            // No more than single precision can give.
            let wanted: [f64; L] = std::array::from_fn(|l| goal[l].max(SINGLE * SINGLE * now[l]));
            let correction = single.krylov(&rounded(&left), &wanted);
            products += single.products;
            let Some(correction) = correction else { break };
            for (x, own) in x.iter_mut().zip(&correction) {
                x.0 = std::array::from_fn(|l| x.0[l] + f64::from(own.0[l]));
            }
            if (0..self.n).all(|l| SINGLE * SINGLE * now[l] <= goal[l]) {
                found = Some(x);
                break;
            }
            left = exact.left(b, &x);
            let after = dots(&left, &left);
            if (0..self.n).all(|l| after[l] <= goal[l]) {
                found = Some(x);
                break;
            }
            if (0..self.n).any(|l| after[l] > goal[l] && !(after[l] < 0.25 * now[l])) {
                break;
            }
        }
        let all = exact.products + products;
        self.sweeps += all;
        found
    }

    /// I − γ P_π of a lane.
    pub(super) fn factorised(&self, l: usize) -> PartialPivLu<f64> {
        let (kernel, gamma, n) = (self.kernel, self.gamma, self.kernel.n_states());
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
    /// (I − γ P_π)⁻¹ b, or its transpose, of one lane.
    pub(super) fn dense(&self, lu: &PartialPivLu<f64>, side: Side, b: &[Lanes<f64, L>], l: usize) -> Vec<f64> {
        let right = Mat::from_fn(b.len(), 1, |s, _| b[s].0[l]);
        let x = match side {
            Side::Values => lu.solve(&right),
            Side::Visits => lu.solve_transpose(&right),
        };
        (0..b.len()).map(|s| x[(s, 0)]).collect()
    }
}

/// Σ a·b of each lane, in double precision.
fn dots<T: Real, const L: usize>(a: &[Lanes<T, L>], b: &[Lanes<T, L>]) -> [f64; L] {
    a.iter().zip(b).fold([0.0; L], |sum, (a, b)| {
        std::array::from_fn(|l| {
            let (a, b): (f64, f64) = (a.0[l].into(), b.0[l].into());
            sum[l] + a * b
        })
    })
}

pub(super) fn residuals<T: Real, const L: usize>(new: &[Lanes<T, L>], old: &[Lanes<T, L>]) -> Vec<Lanes<T, L>> {
    new.iter().zip(old).map(|(new, old)| Lanes(std::array::from_fn(|l| new.0[l] - old.0[l]))).collect()
}

/// In single precision.
fn rounded<const L: usize>(x: &[Lanes<f64, L>]) -> Vec<Lanes<f32, L>> {
    x.iter().map(|x| Lanes(x.0.map(|x| x as f32))).collect()
}
