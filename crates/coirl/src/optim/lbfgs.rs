//! L-BFGS (Nocedal 1980) for smooth convex objectives, with a line search by bisection to the weak Wolfe conditions.
//!
//! One step: a direction from the last pairs of moves and changes of the gradient, then a length t with
//! f(x + td) ≤ f(x) + c₁t·g·d and g(x + td)·d ≥ c₂·g·d. The second keeps the curvature positive, so that the next direction
//! descends as well. No step makes f larger than rounding does.

use super::vectors::{dot, norm};
use crate::error::Result;

/// Pairs that a direction is made of.
const MEMORY: usize = 10;
/// c₁ and c₂.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Evaluations that one step may take.
const MAX_EVALUATIONS: usize = 30;
/// Differences of f below this share of it are rounding.
const ROUNDING: f64 = 1e-15;

/// f and its gradient at a point, with whatever else the caller wants to know about the point.
pub struct Evaluation<T> {
    /// f.
    pub value: f64,
    /// Its gradient.
    pub gradient: Vec<f64>,
    /// What else the caller wants to know about the point.
    pub remark: T,
}

/// Where a step went.
pub struct Accepted<T> {
    /// The length of the step, in units of its direction.
    pub length: f64,
    /// What else the caller wants to know about the point.
    pub remark: T,
}

/// The point reached, with f, its gradient and the last pairs.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lbfgs {
    /// The point reached.
    pub point: Vec<f64>,
    /// f.
    pub value: f64,
    /// Its gradient.
    pub gradient: Vec<f64>,
    moves: Vec<Vec<f64>>,
    changes: Vec<Vec<f64>>,
}

impl Lbfgs {
    /// At a point that was evaluated.
    pub fn new<T>(point: Vec<f64>, at: Evaluation<T>) -> Self {
        Self { point, value: at.value, gradient: at.gradient, moves: Vec::new(), changes: Vec::new() }
    }

    /// Whether this is a point of so many numbers.
    pub fn fits(&self, n: usize) -> bool {
        let all = [&self.point, &self.gradient].into_iter().chain(&self.moves).chain(&self.changes);
        self.moves.len() == self.changes.len() && all.into_iter().all(|list| list.len() == n)
    }

    /// This run in other coordinates, given how points and gradients are turned into them; both must be linear.
    #[must_use]
    pub fn turned(&self, point: impl Fn(&[f64]) -> Vec<f64>, gradient: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        Self {
            point: point(&self.point),
            value: self.value,
            gradient: gradient(&self.gradient),
            moves: self.moves.iter().map(|own| point(own)).collect(),
            changes: self.changes.iter().map(|own| gradient(own)).collect(),
        }
    }

    /// One step; nothing where no length makes f smaller.
    pub fn step<T>(
        &mut self,
        mut objective: impl FnMut(&[f64]) -> Result<Evaluation<T>>,
    ) -> Result<Option<Accepted<T>>> {
        let mut direction = self.direction();
        if !(dot(&self.gradient, &direction) < 0.0) {
            self.moves.clear();
            self.changes.clear();
            direction = self.gradient.iter().map(|g| -g).collect();
        }
        let slope = dot(&self.gradient, &direction);
        if !(slope < 0.0) {
            return Ok(None);
        }
        let mut length = if self.moves.is_empty() { norm(&self.gradient).recip().min(1.0) } else { 1.0 };
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut reached = None;
        for _ in 0..MAX_EVALUATIONS {
            let point: Vec<f64> = self.point.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let at = objective(&point)?;
            if !(at.value <= self.value + DECREASE * length * slope + ROUNDING * self.value.abs()) {
                high = length;
            } else {
                let flat = dot(&at.gradient, &direction) >= CURVATURE * slope;
                low = length;
                reached = Some((length, point, at));
                if flat {
                    break;
                }
            }
            length = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * low };
        }
        Ok(reached.map(|(length, point, at)| self.move_to(length, point, at)))
    }

    fn move_to<T>(&mut self, length: f64, point: Vec<f64>, at: Evaluation<T>) -> Accepted<T> {
        let difference = |new: &[f64], old: &[f64]| new.iter().zip(old).map(|(x, y)| x - y).collect::<Vec<_>>();
        let (moved, changed) = (difference(&point, &self.point), difference(&at.gradient, &self.gradient));
        if dot(&moved, &changed) > f64::EPSILON * norm(&moved) * norm(&changed) {
            if self.moves.len() == MEMORY {
                self.moves.remove(0);
                self.changes.remove(0);
            }
            self.moves.push(moved);
            self.changes.push(changed);
        }
        (self.point, self.value, self.gradient) = (point, at.value, at.gradient);
        Accepted { length, remark: at.remark }
    }

    /// −H g by the two-loop recursion.
    fn direction(&self) -> Vec<f64> {
        let mut d: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let add = |d: &mut [f64], scale: f64, x: &[f64]| d.iter_mut().zip(x).for_each(|(a, b)| *a += scale * b);
        let mut shares = Vec::with_capacity(self.moves.len());
        for (moved, changed) in self.moves.iter().zip(&self.changes).rev() {
            let share = dot(moved, &d) / dot(moved, changed);
            add(&mut d, -share, changed);
            shares.push(share);
        }
        if let (Some(moved), Some(changed)) = (self.moves.last(), self.changes.last()) {
            let scale = dot(moved, changed) / dot(changed, changed);
            d.iter_mut().for_each(|x| *x *= scale);
        }
        for ((moved, changed), share) in self.moves.iter().zip(&self.changes).zip(shares.iter().rev()) {
            let own = dot(changed, &d) / dot(moved, changed);
            add(&mut d, share - own, moved);
        }
        d
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    /// Σ aᵢ (xᵢ − i)² / 2 with curvatures over six orders of magnitude, and Rosenbrock's valley.
    #[test]
    fn known_minima_are_found() {
        let quadratic = |x: &[f64]| {
            let a = |i: usize| 10.0_f64.powi(i as i32 - 2);
            let value = x.iter().enumerate().map(|(i, x)| 0.5 * a(i) * (x - i as f64).powi(2)).sum();
            let gradient = x.iter().enumerate().map(|(i, x)| a(i) * (x - i as f64)).collect();
            Ok(Evaluation { value, gradient, remark: () })
        };
        let valley = |x: &[f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            let gradient = vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b];
            Ok(Evaluation { value: a * a + 100.0 * b * b, gradient, remark: () })
        };
        let run = |objective: &dyn Fn(&[f64]) -> Result<Evaluation<()>>, start: Vec<f64>| {
            let at = objective(&start).unwrap();
            let mut optimiser = Lbfgs::new(start, at);
            for _ in 0..100 {
                let before = optimiser.value;
                if optimiser.step(objective).unwrap().is_none() {
                    break;
                }
                assert!(optimiser.value <= before * (1.0 + 1e-12));
            }
            optimiser.point
        };
        for (i, x) in run(&quadratic, vec![-3.0; 7]).iter().enumerate() {
            assert!((x - i as f64).abs() < 1e-6, "{i}: {x}");
        }
        assert!(run(&valley, vec![-1.2, 1.0]).iter().all(|x| (x - 1.0).abs() < 1e-6));
    }
}
