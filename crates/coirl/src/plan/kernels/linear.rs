//! The two linear systems of a policy: its values, (I − γP) v = r, and its occupancy, (I − γPᵀ) d = ξ.
//!
//! Sweeps are used while they shrink the error fast, then BiCGSTAB while that does. Where one step moves little (grids, mazes, chains, a discount
//! next to one) neither does, and the analysis of the policy says what its factors cost. Where they are small, the system is factorised; otherwise
//! BiCGSTAB goes on with a sweep against the flow as its preconditioner, for as long as that is worth while. The true residual is computed at the end whatever the route, so a claim of convergence
//! is always checked.

use crate::plan::kernels::elimination::Elimination;
use crate::plan::kernels::factor::Factors;
pub(crate) use crate::plan::kernels::krylov::sup_norm;
use crate::plan::kernels::krylov::{Preconditioner, Vectors, bicgstab, norm, residual};
use crate::plan::kernels::order::against_the_flow;
use crate::plan::kernels::ordered::OrderedPolicy;
use crate::plan::kernels::real::Real;
use crate::plan::kernels::sweep::PolicyMatrix;
use std::cell::Cell;

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

/// Factors are computed where they have at most so many numbers (a gigabyte) and take at most so many operations (tens of seconds).
const MAX_FACTOR_VALUES: usize = 125_000_000;
const MAX_FACTOR_OPERATIONS: f64 = 4e11;
/// Factors of at most so many numbers are kept for the next reward.
const KEPT_FACTOR_VALUES: usize = 8_000_000;
/// Sweeps for what rounding leaves of a solution by factors, and the sweeps of last resort.
const FINISHING_SWEEPS: usize = 200;
const LAST_SWEEPS: usize = 100_000;
/// Products of the preconditioned iteration in one round, and the rounds, each from the true residual.
const PRECONDITIONED_PRODUCTS: usize = 2_000;
const PRECONDITIONED_ROUNDS: usize = 20;
/// Operations of a factorisation for which an entry of a preconditioned product is tried, and the products from which trying is worth while.
const OPERATIONS_PER_ENTRY: f64 = 40.0;
const LEAST_PATIENCE: usize = 100;

/// Which of the two systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Side {
    Values,
    Occupancy,
}

/// What is known about how quickly a policy mixes before it is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Mixing {
    Unknown,
    /// Sweeps and plain Krylov steps were seen to be too slow.
    Slow,
}

/// Vectors kept between solves.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    vectors: Vectors,
    /// Where the iteration began, to return to if it leads nowhere.
    start: Vec<f64>,
    ordered: OrderedPolicy,
}

thread_local! {
    /// The last policy that was factorised on this thread: its values, its occupancy, and other rewards that share it need the same factors. What is
    /// kept changes the time of a solve, never its result.
    static FACTORED: Cell<Option<(PolicyMatrix, Factors)>> = const { Cell::new(None) };
}

/// The values of a policy to rounding, from a first guess in `v`.
pub(crate) fn policy_values(matrix: &PolicyMatrix, v: &mut Vec<f64>, scratch: &mut Scratch) -> Solved {
    policy_values_where(Mixing::Unknown, matrix, v, scratch)
}

/// The values of a policy to rounding, from a first guess in `v`, with what is known about how quickly it mixes.
pub(in crate::plan) fn policy_values_where(
    mixing: Mixing,
    matrix: &PolicyMatrix,
    v: &mut Vec<f64>,
    scratch: &mut Scratch,
) -> Solved {
    if matrix.reward.iter().all(|&r| r == 0.0) {
        // Beside values of zero no residual is small, so that no iteration would end.
        v.fill(0.0);
        return Solved { residual: 0.0, products: 0, converged: true };
    }
    let mut products = 0;
    if mixing == Mixing::Unknown {
        let solved = sweep_values(matrix, v);
        if solved.converged {
            return solved;
        }
        products = solved.products;
    }
    let b = matrix.reward.clone();
    let mut solved = solve(mixing, matrix, Side::Values, &b, v, ROUNDING, scratch);
    solved.products += products;
    solved
}

/// Sweeps of a policy's values while each takes off a good share of the span.
fn sweep_values(matrix: &PolicyMatrix, v: &mut Vec<f64>) -> Solved {
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
            return Solved { residual: change.sup_norm(), products, converged: false };
        }
        last_span = size;
    }
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
    let solved = krylov_values(matrix, v, factor, max_products, scratch);
    if solved.converged {
        return solved.products;
    }
    solved.products + policy_values(matrix, v, scratch).products
}

/// Krylov steps towards the values of a policy from `v`, until their residual is down by `factor`. Converged where it is at least halved;
/// otherwise `v` is left alone.
pub(in crate::plan) fn krylov_values(
    matrix: &PolicyMatrix,
    v: &mut Vec<f64>,
    factor: f64,
    max_products: usize,
    scratch: &mut Scratch,
) -> Solved {
    let Scratch { vectors, start, .. } = scratch;
    vectors.resize(v.len());
    start.clone_from(v);
    let first = residual(matrix, Side::Values, &matrix.reward, v, &mut vectors.r);
    let goal = |r: f64, _: f64, _: &[f64]| r <= factor * first;
    let solved = bicgstab(matrix, Side::Values, &matrix.reward, v, goal, max_products, None, vectors);
    let converged = solved.residual <= 0.5 * first;
    if !converged {
        v.clone_from(start);
    }
    Solved { products: solved.products + 1, converged, ..solved }
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
        solved = solve(Mixing::Unknown, matrix, Side::Occupancy, initial, &mut sum, tolerance, scratch);
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

/// The products with a preconditioner that are tried before a factorisation of so many operations.
fn patience(operations: f64, matrix: &PolicyMatrix) -> usize {
    let products = operations / (OPERATIONS_PER_ENTRY * matrix.n_entries().max(1) as f64);
    (products as usize).min(PRECONDITIONED_PRODUCTS)
}

/// Solves one of the systems from a first guess in `x`: Krylov steps while they are quick, then Krylov steps with a preconditioner where factors
/// cost much more, then factors, and sweeps for what is left.
fn solve(
    mixing: Mixing,
    matrix: &PolicyMatrix,
    side: Side,
    b: &[f64],
    x: &mut [f64],
    tolerance: f64,
    scratch: &mut Scratch,
) -> Solved {
    scratch.vectors.resize(x.len());
    let small = |residual: f64, x: &[f64]| residual <= tolerance * norm(side, x).max(norm(side, b));
    let mut products = 0;
    if mixing == Mixing::Unknown {
        let solved = iterated(matrix, side, b, x, &small, (8, 400), None, &mut scratch.vectors);
        products += solved.products;
        if solved.converged {
            return Solved { products, ..solved };
        }
    }
    let known = FACTORED.take().filter(|(of, _)| of.has_the_transitions_of(matrix));
    let analysed = match known {
        Some(_) => None,
        None => Elimination::of(matrix, MAX_FACTOR_VALUES).filter(|new| new.operations <= MAX_FACTOR_OPERATIONS),
    };
    // What is tried before factors depends on what they cost, not on whether they are known: the result is the same.
    let operations = known.as_ref().map(|(_, factors)| factors.operations());
    let operations = operations.or(analysed.as_ref().map(|new| new.operations));
    let patience = operations.map_or(PRECONDITIONED_PRODUCTS, |operations| patience(operations, matrix));
    if patience >= LEAST_PATIENCE {
        scratch.ordered.set_order(against_the_flow(matrix));
        scratch.ordered.set_policy(matrix);
        let Scratch { ordered, vectors, .. } = &mut *scratch;
        let mut precondition = |x: &mut [f64]| ordered.precondition(side, x);
        let rounds = (PRECONDITIONED_ROUNDS, patience);
        let solved = iterated(matrix, side, b, x, &small, rounds, Some(&mut precondition), vectors);
        products += solved.products;
        if solved.converged {
            FACTORED.set(known);
            return Solved { products, ..solved };
        }
    }
    let factored = known.or_else(|| analysed.map(|new| (matrix.clone(), Factors::new(matrix, new))));
    let mut most_sweeps = LAST_SWEEPS;
    if let Some((_, factors)) = &factored {
        products += direct(matrix, factors, side, b, x);
        most_sweeps = FINISHING_SWEEPS;
    }
    FACTORED.set(factored.filter(|(_, factors)| factors.n_values() <= KEPT_FACTOR_VALUES));
    // What is left is taken off by sweeps, which always converge.
    let mut residual_now = f64::INFINITY;
    for _ in 0..most_sweeps {
        residual_now = residual(matrix, side, b, x, &mut scratch.vectors.r);
        products += 1;
        if small(residual_now, x) {
            return Solved { residual: residual_now, products, converged: true };
        }
        x.iter_mut().zip(&scratch.vectors.r).for_each(|(xi, ri)| *xi += ri);
    }
    // Rounding in the products themselves can keep the residual a little above its goal.
    let converged = residual_now <= 64.0 * tolerance * norm(side, x).max(norm(side, b));
    Solved { residual: residual_now, products, converged }
}

/// Rounds of Krylov steps, each from the true residual (iterative refinement), while a round takes off nine tenths of it.
#[allow(clippy::too_many_arguments)]
fn iterated(
    matrix: &PolicyMatrix,
    side: Side,
    b: &[f64],
    x: &mut [f64],
    small: &dyn Fn(f64, &[f64]) -> bool,
    (rounds, products_a_round): (usize, usize),
    mut preconditioner: Option<&mut Preconditioner<'_>>,
    vectors: &mut Vectors,
) -> Solved {
    let mut last = f64::INFINITY;
    let mut ended = Solved { residual: f64::INFINITY, products: 0, converged: false };
    for _ in 0..rounds {
        let goal = |r: f64, _: f64, x: &[f64]| small(r, x);
        let preconditioner = preconditioner.as_mut().map(|p| &mut **p as &mut Preconditioner<'_>);
        let solved = bicgstab(matrix, side, b, x, goal, products_a_round, preconditioner, vectors);
        let products = ended.products + solved.products;
        ended = Solved { residual: solved.residual, products, converged: small(solved.residual, x) };
        if ended.converged || solved.residual > 0.1 * last {
            break;
        }
        last = solved.residual;
    }
    ended
}

/// A solution by factors, with refinement; leaves `x` alone where numbers overflow. Returns the products with the matrix.
fn direct(matrix: &PolicyMatrix, factors: &Factors, side: Side, b: &[f64], x: &mut [f64]) -> usize {
    let mut r = vec![0.0; x.len()];
    let mut last = f64::INFINITY;
    for round in 0..3 {
        let size = residual(matrix, side, b, x, &mut r);
        if size == 0.0 || size > 0.5 * last {
            return round + 1;
        }
        last = size;
        match side {
            Side::Values => factors.solve_values(&mut r),
            Side::Occupancy => factors.solve_occupancy(&mut r),
        }
        if r.iter().all(|r| r.is_finite()) {
            x.iter_mut().zip(&r).for_each(|(x, r)| *x += r);
        }
    }
    3
}
