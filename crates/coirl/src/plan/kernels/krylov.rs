//! BiCGSTAB (van der Vorst 1992) for the two linear systems of a policy, with or without a preconditioner.

use crate::plan::kernels::linear::{Side, Solved};
use crate::plan::kernels::real::Real;
use crate::plan::kernels::sweep::PolicyMatrix;

/// Products within which the residual has to fall to [`PACE`] of what it was; otherwise the iteration gives up.
const WINDOW: usize = 100;
const PACE: f64 = 0.05;

/// What the iteration is preconditioned with: solves a system that resembles the matrix, in place.
pub(in crate::plan) type Preconditioner<'a> = dyn FnMut(&mut [f64]) + 'a;

/// The vectors of the iteration, kept between solves.
#[derive(Debug, Default)]
pub(in crate::plan) struct Vectors {
    pub(in crate::plan) r: Vec<f64>,
    r0: Vec<f64>,
    p: Vec<f64>,
    v: Vec<f64>,
    s: Vec<f64>,
    t: Vec<f64>,
    /// p and s after the preconditioner.
    near_p: Vec<f64>,
    near_s: Vec<f64>,
    /// Where the iteration began.
    first: Vec<f64>,
}

impl Vectors {
    pub(in crate::plan) fn resize(&mut self, n: usize) {
        for vector in [&mut self.r, &mut self.r0, &mut self.p, &mut self.v, &mut self.s, &mut self.t] {
            vector.clear();
            vector.resize(n, 0.0);
        }
    }
}

/// BiCGSTAB until `goal(residual, first residual, x)` holds, the products run out, progress is too slow or the recurrence breaks down;
/// never to a larger residual than at the start.
#[allow(clippy::too_many_arguments)] // the pieces of one iteration
pub(in crate::plan) fn bicgstab(
    matrix: &PolicyMatrix,
    side: Side,
    b: &[f64],
    x: &mut [f64],
    goal: impl Fn(f64, f64, &[f64]) -> bool,
    max_products: usize,
    mut preconditioner: Option<&mut Preconditioner<'_>>,
    w: &mut Vectors,
) -> Solved {
    let first = residual(matrix, side, b, x, &mut w.r);
    w.first.clear();
    w.first.extend_from_slice(x);
    let mut products = 1;
    w.r0.copy_from_slice(&w.r);
    w.p.copy_from_slice(&w.r);
    let mut rho = dot(&w.r0, &w.r);
    let mut size = first;
    let mut best = first;
    let mut earlier = (first, 0);
    while !goal(size, first, x) && products + 2 <= max_products {
        let near = preconditioned(&mut preconditioner, &w.p, &mut w.near_p);
        apply(matrix, side, near, &mut w.v);
        let alpha = rho / dot(&w.r0, &w.v);
        if !alpha.is_finite() || alpha == 0.0 {
            break;
        }
        for i in 0..x.len() {
            w.s[i] = w.r[i] - alpha * w.v[i];
        }
        let near = preconditioned(&mut preconditioner, &w.s, &mut w.near_s);
        apply(matrix, side, near, &mut w.t);
        products += 2;
        let tt = dot(&w.t, &w.t);
        let omega = if tt > 0.0 { dot(&w.t, &w.s) / tt } else { 0.0 };
        let (p, s) = if preconditioner.is_some() { (&w.near_p, &w.near_s) } else { (&w.p, &w.s) };
        for i in 0..x.len() {
            x[i] += alpha * p[i] + omega * s[i];
            w.r[i] = w.s[i] - omega * w.t[i];
        }
        size = norm(side, &w.r);
        if !size.is_finite() || omega == 0.0 || size > 1e6 * best {
            break;
        }
        best = best.min(size);
        if products >= earlier.1 + WINDOW {
            if best > PACE * earlier.0 {
                break;
            }
            earlier = (best, products);
        }
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
    let mut size = residual(matrix, side, b, x, &mut w.r);
    if !(size <= first) {
        // The recurrence led away, perhaps so far that no later step could come back.
        x.copy_from_slice(&w.first);
        size = residual(matrix, side, b, x, &mut w.r);
    }
    Solved { residual: size, products: products + 1, converged: goal(size, first, x) }
}

/// The vector after the preconditioner, or the vector itself where there is none.
fn preconditioned<'v>(
    preconditioner: &mut Option<&mut Preconditioner<'_>>,
    vector: &'v [f64],
    near: &'v mut Vec<f64>,
) -> &'v [f64] {
    let Some(preconditioner) = preconditioner else { return vector };
    near.clear();
    near.extend_from_slice(vector);
    preconditioner(near);
    near
}

fn apply(matrix: &PolicyMatrix, side: Side, v: &[f64], out: &mut [f64]) {
    match side {
        Side::Values => matrix.apply(v, out),
        Side::Occupancy => matrix.apply_transposed(v, out),
    }
}

/// `r = b − A x` and its norm.
pub(in crate::plan) fn residual(matrix: &PolicyMatrix, side: Side, b: &[f64], x: &[f64], r: &mut [f64]) -> f64 {
    apply(matrix, side, x, r);
    r.iter_mut().zip(b).for_each(|(ri, bi)| *ri = bi - *ri);
    norm(side, r)
}

pub(in crate::plan) fn norm(side: Side, x: &[f64]) -> f64 {
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

pub(in crate::plan) fn dot(a: &[f64], b: &[f64]) -> f64 {
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
