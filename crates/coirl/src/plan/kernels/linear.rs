//! The two linear systems of a policy: its values, (I − γP) v = r, and its occupancy, (I − γPᵀ) d = ξ.
//!
//! Sweeps are used while they shrink the error fast, BiCGSTAB (van der Vorst 1992) otherwise, and a sparse LU
//! factorisation where neither gets there (long chains and cycles with a discount near one). The true residual is
//! computed at the end whatever the route, so a claim of convergence is always checked.

use crate::plan::kernels::real::Real;
use crate::plan::kernels::sweep::PolicyMatrix;

/// How a solve ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Solved {
    /// Sup norm (values) or 1-norm (occupancy) of the true residual.
    pub(crate) residual: f64,
    /// Products with the matrix.
    pub(crate) products: usize,
    pub(crate) converged: bool,
}

/// Residual, relative to the size of the solution, below which only rounding is left.
pub(crate) const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// A sweep that leaves more than this share of the span is slower than a Krylov step.
pub(in crate::plan) const SLOW_SWEEP: f64 = 0.6;

/// LU is tried only where its fill-in cannot run away: moderate size, or rows of a few entries.
const LU_MAX_STATES: usize = 4_000;
const LU_MAX_SPARSE_STATES: usize = 2_000_000;
const LU_SPARSE_ENTRIES_PER_ROW: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Values,
    Occupancy,
}

/// Scratch vectors of the Krylov iteration, kept between solves.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    r: Vec<f64>,
    r0: Vec<f64>,
    p: Vec<f64>,
    v: Vec<f64>,
    s: Vec<f64>,
    t: Vec<f64>,
    /// Where the iteration began, to return to if it leads nowhere.
    start: Vec<f64>,
}

impl Scratch {
    fn resize(&mut self, n: usize) {
        for vector in [&mut self.r, &mut self.r0, &mut self.p, &mut self.v, &mut self.s, &mut self.t] {
            vector.clear();
            vector.resize(n, 0.0);
        }
    }
}

/// The values of a policy to rounding, from a first guess in `v`.
pub(crate) fn policy_values(matrix: &PolicyMatrix, v: &mut Vec<f64>, scratch: &mut Scratch) -> Solved {
    let gamma = matrix.gamma;
    let mut next = vec![0.0; v.len()];
    let mut products = 0;
    let mut last_span = f64::INFINITY;
    loop {
        let change = matrix.sweep(v, &mut next);
        products += 1;
        let scale = sup_norm(&next).max(sup_norm(&matrix.reward));
        let converged = change.sup_norm() <= ROUNDING * scale;
        std::mem::swap(v, &mut next);
        if converged {
            return Solved { residual: change.sup_norm(), products, converged: true };
        }
        if gamma < 1.0 {
            // The sweep left a residual between γ·lo and γ·hi; the constant part of it is removed at once.
            let shift = gamma * change.mid() / (1.0 - gamma);
            v.iter_mut().for_each(|x| *x += shift);
        }
        let size = if gamma < 1.0 { change.span() } else { change.sup_norm() };
        if size > SLOW_SWEEP * last_span || products > 200 {
            break;
        }
        last_span = size;
    }
    let b = matrix.reward.clone();
    let mut solved = krylov_then_lu(matrix, Side::Values, &b, v, ROUNDING, scratch);
    solved.products += products;
    solved
}

/// Reduces the residual of the values of a policy by `factor`, by Krylov steps from `v`; solves for the values outright
/// where those get nowhere. Returns the products with the matrix.
pub(crate) fn reduce_value_residual(
    matrix: &PolicyMatrix,
    v: &mut Vec<f64>,
    factor: f64,
    max_products: usize,
    scratch: &mut Scratch,
) -> usize {
    scratch.resize(v.len());
    scratch.start.clone_from(v);
    let first = residual(matrix, Side::Values, &matrix.reward, v, &mut scratch.r);
    let goal = |r: f64, _: f64, _: &[f64]| r <= factor * first;
    let solved = bicgstab(matrix, Side::Values, &matrix.reward, v, goal, max_products, scratch);
    if solved.residual <= 0.5 * first {
        return solved.products + 1;
    }
    v.clone_from(&scratch.start);
    solved.products + 1 + policy_values(matrix, v, scratch).products
}

/// The discounted occupancy of a policy, `Σ γᵗ P(s_t = ·)` from `initial`, to a 1-norm residual of `tolerance` relative to
/// its own size ([`ROUNDING`] for all that can be had).
pub(crate) fn policy_occupancy(
    matrix: &PolicyMatrix,
    initial: &[f64],
    tolerance: f64,
    scratch: &mut Scratch,
) -> (Vec<f64>, Solved) {
    let Series { mut sum, mut solved } = occupancy_series(matrix, initial, tolerance, None);
    if !solved.converged {
        let products = solved.products;
        solved = krylov_then_lu(matrix, Side::Occupancy, initial, &mut sum, tolerance, scratch);
        solved.products += products;
    }
    (sum, solved)
}

/// An error estimate from the next and the last term of a series.
pub(crate) type Estimate<'a, T> = dyn Fn(&[T], &[T]) -> f64 + 'a;

/// How far the plain series of an occupancy got.
pub(crate) struct Series {
    pub(crate) sum: Vec<f64>,
    pub(crate) solved: Solved,
}

/// Adds up x_t = γᵗ P(s_t = ·) and finishes the sum with the tail that repeats the last term, once terms only shrink by γ.
/// Gives up where they take long to get there.
///
/// `estimate`, where given, looks at the next and the last term and says how large an error the tail formula makes in what
/// the caller is after, in units of `tolerance`'s; it is asked once the 1-norm is near.
pub(crate) fn occupancy_series<T: Real>(
    matrix: &PolicyMatrix<T>,
    initial: &[f64],
    tolerance: f64,
    estimate: Option<&Estimate<'_, T>>,
) -> Series {
    let gamma = matrix.gamma;
    let shrink = T::nearest(gamma);
    let mut x: Vec<T> = initial.iter().map(|&p| T::nearest(p)).collect();
    let mut sum = x.clone();
    let mut y = vec![T::ZERO; x.len()];
    let mut last_defect = f64::INFINITY;
    let mut products = 0;
    let mut converged = false;
    let mut residual = f64::INFINITY;
    while products < 200 {
        matrix.push(&x, &mut y);
        products += 1;
        // How far the new term is from γ times the old one is what the tail formula gets wrong.
        let (mut defect, mut size) = (T::ZERO, T::ZERO);
        for (old, new) in x.iter().zip(&y) {
            let off = *new - shrink * *old;
            defect = defect + if off < T::ZERO { T::ZERO - off } else { off };
            size = size + if *new < T::ZERO { T::ZERO - *new } else { *new };
        }
        let (defect, size): (f64, f64) = (defect.into(), size.into());
        let near = defect <= 100.0 * tolerance && defect > tolerance;
        let good = near && estimate.is_some_and(|estimate| estimate(&y, &x) <= tolerance);
        std::mem::swap(&mut x, &mut y);
        converged = good || (gamma < 1.0 && defect <= tolerance) || size <= 0.01 * tolerance;
        if converged {
            residual = if gamma < 1.0 { gamma / (1.0 - gamma) * defect } else { size };
            break;
        }
        sum.iter_mut().zip(&x).for_each(|(total, term)| *total = *total + *term);
        if defect > SLOW_SWEEP * last_defect {
            break;
        }
        last_defect = defect;
    }
    // Without convergence the last term is in the sum already.
    let terms = if gamma < 1.0 { 1.0 / (1.0 - gamma) } else { 1.0 } - if converged { 0.0 } else { 1.0 };
    let finished = |(total, term): (&T, &T)| -> f64 { (*total).into() + terms * (*term).into() };
    let sum = sum.iter().zip(&x).map(finished).collect();
    Series { sum, solved: Solved { residual, products, converged } }
}

fn krylov_then_lu(
    matrix: &PolicyMatrix,
    side: Side,
    b: &[f64],
    x: &mut [f64],
    tolerance: f64,
    scratch: &mut Scratch,
) -> Solved {
    scratch.resize(x.len());
    let mut products = 0;
    let mut last = f64::INFINITY;
    let small = |residual: f64, x: &[f64]| residual <= tolerance * norm(side, x).max(norm(side, b));
    // Each round restarts from the true residual: iterative refinement.
    for _ in 0..8 {
        let goal = |r: f64, _: f64, x: &[f64]| small(r, x);
        let solved = bicgstab(matrix, side, b, x, goal, 400, scratch);
        products += solved.products;
        if small(solved.residual, x) {
            return Solved { products, converged: true, ..solved };
        }
        if solved.residual > 0.1 * last {
            break;
        }
        last = solved.residual;
    }
    let n = x.len();
    let sparse = matrix.n_entries() <= LU_SPARSE_ENTRIES_PER_ROW * n;
    if n <= LU_MAX_STATES || (sparse && n <= LU_MAX_SPARSE_STATES) {
        direct(matrix, side, b, x, scratch);
    }
    // What is left is taken off by sweeps, which always converge.
    let mut residual_now = f64::INFINITY;
    for _ in 0..100_000 {
        residual_now = residual(matrix, side, b, x, &mut scratch.r);
        products += 1;
        if small(residual_now, x) {
            return Solved { residual: residual_now, products, converged: true };
        }
        x.iter_mut().zip(&scratch.r).for_each(|(xi, ri)| *xi += ri);
    }
    // Rounding in the products themselves can keep the residual a little above its goal.
    let converged = residual_now <= 64.0 * tolerance * norm(side, x).max(norm(side, b));
    Solved { residual: residual_now, products, converged }
}

fn apply(matrix: &PolicyMatrix, side: Side, v: &[f64], out: &mut [f64]) {
    match side {
        Side::Values => matrix.apply(v, out),
        Side::Occupancy => matrix.apply_transposed(v, out),
    }
}

/// `r = b − A x` and its norm.
fn residual(matrix: &PolicyMatrix, side: Side, b: &[f64], x: &[f64], r: &mut [f64]) -> f64 {
    apply(matrix, side, x, r);
    r.iter_mut().zip(b).for_each(|(ri, bi)| *ri = bi - *ri);
    norm(side, r)
}

fn norm(side: Side, x: &[f64]) -> f64 {
    match side {
        Side::Values => sup_norm(x),
        Side::Occupancy => x.iter().map(|xi| xi.abs()).sum(),
    }
}

/// The largest absolute value; in lanes, because one after another each comparison waits for the last.
pub(crate) fn sup_norm<T: Real>(x: &[T]) -> T {
    let larger = |max: T, x: T| if x.abs() > max { x.abs() } else { max };
    let (strokes, rest) = x.as_chunks::<16>();
    let mut lanes = [T::ZERO; 16];
    for stroke in strokes {
        for (max, x) in lanes.iter_mut().zip(stroke) {
            *max = larger(*max, *x);
        }
    }
    rest.iter().chain(&lanes).fold(T::ZERO, |max, x| larger(max, *x))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (mut left, mut right) = (a.chunks_exact(8), b.chunks_exact(8));
    for (x, y) in (&mut left).zip(&mut right) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    let tail: f64 = left.remainder().iter().zip(right.remainder()).map(|(x, y)| x * y).sum();
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) + tail
}

/// BiCGSTAB until `goal(residual, first residual, x)` holds, the products run out or the recurrence breaks down.
fn bicgstab(
    matrix: &PolicyMatrix,
    side: Side,
    b: &[f64],
    x: &mut [f64],
    goal: impl Fn(f64, f64, &[f64]) -> bool,
    max_products: usize,
    w: &mut Scratch,
) -> Solved {
    let first = residual(matrix, side, b, x, &mut w.r);
    let mut products = 1;
    w.r0.copy_from_slice(&w.r);
    w.p.copy_from_slice(&w.r);
    let mut rho = dot(&w.r0, &w.r);
    let mut size = first;
    let mut best = first;
    while !goal(size, first, x) && products + 2 <= max_products {
        apply(matrix, side, &w.p, &mut w.v);
        let alpha = rho / dot(&w.r0, &w.v);
        if !alpha.is_finite() || alpha == 0.0 {
            break;
        }
        for i in 0..x.len() {
            w.s[i] = w.r[i] - alpha * w.v[i];
        }
        apply(matrix, side, &w.s, &mut w.t);
        products += 2;
        let tt = dot(&w.t, &w.t);
        let omega = if tt > 0.0 { dot(&w.t, &w.s) / tt } else { 0.0 };
        for i in 0..x.len() {
            x[i] += alpha * w.p[i] + omega * w.s[i];
            w.r[i] = w.s[i] - omega * w.t[i];
        }
        size = norm(side, &w.r);
        if !size.is_finite() || omega == 0.0 || size > 1e6 * best {
            break;
        }
        best = best.min(size);
        let rho_next = dot(&w.r0, &w.r);
        let beta = (rho_next / rho) * (alpha / omega);
        if !beta.is_finite() {
            break;
        }
        rho = rho_next;
        for i in 0..x.len() {
            w.p[i] = w.r[i] + beta * (w.p[i] - omega * w.v[i]);
        }
    }
    if x.iter().any(|xi| !xi.is_finite()) {
        x.iter_mut().for_each(|xi| *xi = 0.0);
    }
    let size = residual(matrix, side, b, x, &mut w.r);
    Solved { residual: size, products: products + 1, converged: goal(size, first, x) }
}

/// Sparse LU with refinement; leaves `x` alone where the factorisation fails.
fn direct(matrix: &PolicyMatrix, side: Side, b: &[f64], x: &mut [f64], scratch: &mut Scratch) {
    use faer::linalg::solvers::Solve;
    use faer::sparse::{SparseColMat, Triplet};
    let n = x.len();
    let mut entries = Vec::with_capacity(matrix.n_entries() + n);
    for s in 0..n {
        entries.push(Triplet::new(s, s, 1.0));
        let (next, p) = matrix.row(s);
        for (&to, &p) in next.iter().zip(p) {
            let (row, column) = if side == Side::Values { (s, to as usize) } else { (to as usize, s) };
            entries.push(Triplet::new(row, column, -matrix.gamma * p));
        }
    }
    let Ok(system) = SparseColMat::try_new_from_triplets(n, n, &entries) else { return };
    let Ok(lu) = system.sp_lu() else { return };
    for _ in 0..3 {
        residual(matrix, side, b, x, &mut scratch.r);
        let correction = lu.solve(faer::ColRef::from_slice(&scratch.r));
        if (0..n).all(|i| correction[i].is_finite()) {
            (0..n).for_each(|i| x[i] += correction[i]);
        }
    }
}
