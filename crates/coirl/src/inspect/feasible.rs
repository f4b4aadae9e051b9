//! An outer approximation of the mappings that explain the demonstrations, and how far it extends in a direction:
//!
//! ```text
//! max e·W   over   ⟨W, Ḡ⟩ = h,  ‖W‖₂ ≤ R,  g_j·W ≤ ε_j.
//! ```
//!
//! Whatever multipliers λ ≥ 0 are chosen, Σλ_j ε_j plus the largest (e − Σλ_j g_j)·W over slice and ball, which has a closed
//! form, is an upper bound: what a solver leaves undone can only make the set look larger. Up to [`FEW`] entries the multipliers
//! come from an interior-point method, at n²·m operations a step for n entries and m cuts; beyond that from minimising the
//! bound over one multiplier after the other, at n·m operations a pass.

use crate::error::{Error, Result};
use crate::optim::{dot, norm};
use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{NonnegativeConeT, SecondOrderConeT, ZeroConeT};
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver};

/// g·W ≤ limit, with ‖g‖ = 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    pub(super) normal: Vec<f64>,
    pub(super) limit: f64,
}

impl Cut {
    /// g·W ≤ limit, scaled to unit length; nothing for g = 0, which says nothing about W.
    pub(super) fn new(mut normal: Vec<f64>, limit: f64) -> Option<Self> {
        let size = norm(&normal);
        normal.iter_mut().for_each(|x| *x /= size);
        (size > 0.0 && size.is_finite()).then_some(Self { normal, limit: limit / size })
    }
}

/// Slice, ball and cuts.
#[derive(Debug, Clone)]
pub(super) struct FeasibleSet {
    /// Ḡ/‖Ḡ‖.
    axis: Vec<f64>,
    /// h/‖Ḡ‖: how far the slice is from the origin.
    height: f64,
    radius: f64,
    pub(super) cuts: Vec<Cut>,
}

/// How far the set extends.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    /// No point of the set is beyond.
    pub(super) bound: f64,
    /// Where the solver thinks it ends.
    pub(super) point: Vec<f64>,
    /// Cuts with a multiplier that counts.
    pub(super) active: Vec<usize>,
}

impl FeasibleSet {
    /// All W with ⟨W, reference⟩ = level and ‖W‖ ≤ radius.
    pub(super) fn new(reference: &[f64], level: f64, radius: f64) -> Self {
        let size = norm(reference);
        let axis = reference.iter().map(|x| x / size).collect();
        Self { axis, height: level / size, radius, cuts: Vec::new() }
    }

    /// The largest r·W over slice and ball.
    fn without_cuts(&self, r: &[f64]) -> f64 {
        let along = dot(r, &self.axis);
        let across: f64 = r.iter().zip(&self.axis).map(|(x, a)| (x - along * a).powi(2)).sum();
        along * self.height + self.half_width() * across.sqrt()
    }

    /// Radius of the ball inside the slice.
    fn half_width(&self) -> f64 {
        (self.radius * self.radius - self.height * self.height).max(0.0).sqrt()
    }

    /// The largest sign·W_index without any cut.
    pub(super) fn allowed(&self, index: usize, sign: f64) -> f64 {
        self.without_cuts(&self.unit(index, sign))
    }

    fn unit(&self, index: usize, sign: f64) -> Vec<f64> {
        (0..self.axis.len()).map(|j| if j == index { sign } else { 0.0 }).collect()
    }

    /// The largest sign·W_index.
    pub(super) fn extent(&self, index: usize, sign: f64) -> Result<Extent> {
        let objective = self.unit(index, sign);
        let (point, multipliers) =
            if self.axis.len() <= FEW { self.interior_point(&objective)? } else { self.one_by_one(&objective) };
        let mut rest = objective;
        let mut bound = 0.0;
        for (cut, multiplier) in self.cuts.iter().zip(&multipliers) {
            rest.iter_mut().zip(&cut.normal).for_each(|(x, g)| *x -= multiplier * g);
            bound += multiplier * cut.limit;
        }
        bound += self.without_cuts(&rest);
        let largest = multipliers.iter().copied().fold(0.0, f64::max);
        let active = (0..multipliers.len()).filter(|&i| multipliers[i] > ACTIVE * largest).collect();
        Ok(Extent { bound: bound.min(self.allowed(index, sign)), point, active })
    }

    /// Maximiser and multipliers by the convex solver.
    fn interior_point(&self, objective: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let (n, m) = (self.axis.len(), self.cuts.len());
        let mut columns = vec![0];
        let (mut rows, mut entries) = (Vec::new(), Vec::new());
        // b − Ax in the cones: the slice, the cuts, then (R, W).
        for j in 0..n {
            let mut put = |row: usize, entry: f64| {
                if entry != 0.0 {
                    rows.push(row);
                    entries.push(entry);
                }
            };
            put(0, self.axis[j]);
            self.cuts.iter().enumerate().for_each(|(i, cut)| put(1 + i, cut.normal[j]));
            put(m + 2 + j, -1.0);
            columns.push(rows.len());
        }
        let constraints = CscMatrix::new(m + n + 2, n, columns, rows, entries);
        let mut limits = vec![0.0; m + n + 2];
        limits[0] = self.height;
        limits[1..=m].iter_mut().zip(&self.cuts).for_each(|(limit, cut)| *limit = cut.limit);
        limits[m + 1] = self.radius;
        let costs: Vec<f64> = objective.iter().map(|x| -x).collect();
        let refuse = |reason: String| Error::Solver { problem: "the width of the feasible set", reason };
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .max_threads(1)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        let cones = [ZeroConeT(1), NonnegativeConeT(m), SecondOrderConeT(n + 1)];
        let mut solver = DefaultSolver::new(&CscMatrix::zeros((n, n)), &costs, &constraints, &limits, &cones, settings)
            .map_err(|error| refuse(error.to_string()))?;
        solver.solve();
        let usable = |x: &f64| if x.is_finite() { x.max(0.0) } else { 0.0 };
        let multipliers: Vec<f64> = solver.solution.z.iter().skip(1).take(m).map(usable).collect();
        let point = solver.solution.x.iter().map(|x| if x.is_finite() { *x } else { 0.0 }).collect();
        Ok((point, multipliers))
    }

    /// Maximiser and multipliers by minimising the bound
    ///
    /// ```text
    /// Σλ_j ε′_j + ρ‖r‖,     r = e′ − Σλ_j g′_j,     ε′_j = ε_j − height·(g_j·axis),
    /// ```
    ///
    /// over λ_j ≥ 0 one after the other, where ′ takes the part along the axis out and ρ is the radius of the ball in the slice.
    fn one_by_one(&self, objective: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let radius = self.half_width();
        let across = |x: &[f64]| -> Vec<f64> {
            let along = dot(x, &self.axis);
            x.iter().zip(&self.axis).map(|(x, a)| x - along * a).collect()
        };
        let cuts: Vec<(Vec<f64>, f64, f64)> = self
            .cuts
            .iter()
            .map(|cut| {
                let normal = across(&cut.normal);
                let size = norm(&normal);
                (normal, size, cut.limit - self.height * dot(&cut.normal, &self.axis))
            })
            .collect();
        let mut multipliers = vec![0.0; cuts.len()];
        let mut r = across(objective);
        for _ in 0..PASSES {
            let mut moved: f64 = 0.0;
            for ((normal, size, limit), multiplier) in cuts.iter().zip(&mut multipliers) {
                // A cut across nothing, or one that no point of the ball satisfies: no multiplier has a minimum.
                let slope = limit / (size * radius);
                if *size < 1e-12 || slope <= -1.0 {
                    continue;
                }
                let along = dot(&r, normal) / size + *multiplier * size;
                let left = (dot(&r, &r) - (along - *multiplier * size).powi(2)).max(0.0).sqrt();
                let best =
                    if slope >= 1.0 { 0.0 } else { (along - left * slope / (1.0 - slope * slope).sqrt()) / size };
                let change = best.max(0.0) - *multiplier;
                if change != 0.0 {
                    r.iter_mut().zip(normal).for_each(|(x, g)| *x -= change * g);
                    *multiplier += change;
                    moved = moved.max(change.abs() * size);
                }
            }
            if moved <= STILL * norm(&r) {
                break;
            }
        }
        let length = norm(&r).max(f64::MIN_POSITIVE);
        let point = r.iter().zip(&self.axis).map(|(x, a)| self.height * a + radius * x / length).collect();
        (point, multipliers)
    }
}

/// Entries up to which the interior-point method is used.
const FEW: usize = 64;
/// Passes over the cuts, and the change relative to what is left at which they end.
const PASSES: usize = 20;
const STILL: f64 = 1e-4;
/// Multipliers below this share of the largest are what an interior point leaves of zero.
const ACTIVE: f64 = 1e-7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disc_cut_by_a_line() {
        // The slice z = 1 of the ball of radius √5 is a disc of radius 2; x ≤ 0.5 and x + y ≤ 1 cut it.
        let mut set = FeasibleSet::new(&[0.0, 0.0, 2.0], 2.0, 5_f64.sqrt());
        let extent =
            |set: &FeasibleSet, index, sign| set.extent(index, sign).map(|extent| extent.bound).unwrap_or(f64::NAN);
        assert!((extent(&set, 0, 1.0) - 2.0).abs() < 1e-6 && (extent(&set, 2, 1.0) - 1.0).abs() < 1e-6);
        set.cuts.extend(Cut::new(vec![2.0, 0.0, 0.0], 1.0));
        set.cuts.extend(Cut::new(vec![1.0, 1.0, 0.0], 1.0));
        assert!((extent(&set, 0, 1.0) - 0.5).abs() < 1e-6);
        assert!((extent(&set, 0, -1.0) - 2.0).abs() < 1e-6);
        // y is largest where the line x + y = 1 meets the circle: x = (1 − √7)/2.
        assert!((extent(&set, 1, 1.0) - (1.0 + 7_f64.sqrt()) / 2.0).abs() < 1e-6);
    }

    #[test]
    fn both_ways_to_the_multipliers_agree() {
        let number = |i: usize| ((i * 7919 % 101) as f64 - 50.0) / 50.0;
        let mut set = FeasibleSet::new(&(0..6).map(|j| 1.0 + number(j)).collect::<Vec<_>>(), 0.8, 3.0);
        for i in 0..20 {
            set.cuts.extend(Cut::new((0..6).map(|j| number(11 * i + 3 * j + 5)).collect(), 1.0));
        }
        for index in 0..6 {
            let objective = set.unit(index, 1.0);
            let bound = |multipliers: &[f64]| {
                let mut rest = objective.clone();
                for (cut, multiplier) in set.cuts.iter().zip(multipliers) {
                    rest.iter_mut().zip(&cut.normal).for_each(|(x, g)| *x -= multiplier * g);
                }
                let cuts: f64 = set.cuts.iter().zip(multipliers).map(|(cut, multiplier)| multiplier * cut.limit).sum();
                set.without_cuts(&rest) + cuts
            };
            let solved = set.interior_point(&objective).map(|found| bound(&found.1)).unwrap_or(f64::NAN);
            let (point, multipliers) = set.one_by_one(&objective);
            let found = bound(&multipliers);
            assert!(found >= solved - 1e-6 && found <= solved + 0.1 * solved.abs(), "{found} {solved}");
            assert!((norm(&point) - set.radius).abs() < 1e-9 && (dot(&point, &set.axis) - set.height).abs() < 1e-9);
        }
    }

    #[test]
    fn an_empty_set_still_has_honest_bounds() {
        let mut set = FeasibleSet::new(&[0.0, 1.0], 1.0, 2.0);
        set.cuts.extend(Cut::new(vec![1.0, 0.0], -1.0));
        set.cuts.extend(Cut::new(vec![-1.0, 0.0], -1.0));
        assert!(set.extent(0, 1.0).is_ok_and(|extent| extent.bound <= 3_f64.sqrt() + 1e-9));
    }
}
