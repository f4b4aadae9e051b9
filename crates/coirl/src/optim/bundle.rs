//! A proximal bundle method for convex, positively homogeneous functions on a normalised set:
//!
//! ```text
//! minimise  F(x)   over   ⟨x, r⟩ = 1,  ‖x‖₂ ≤ R/‖r‖₂,        F(x) = max of g·x over its subgradients g.
//! ```
//!
//! Every evaluation gives a cut F(x) ≥ g·x that holds everywhere; the next point minimises the largest cut plus ‖x − x̂‖²/(2τ), a quadratic
//! programme in as many variables as there are cuts. The multipliers λ of its solution give a certified lower bound, the least of
//! Σλ_j g_j·x over the set in closed form, and so the gap.

use super::simplex_qp::least_on_simplex;
use super::vectors::{dot, norm};
use crate::error::Result;

/// A candidate whose value falls by this share of what the cuts promise becomes the centre.
const SERIOUS: f64 = 0.1;
/// Steps without a new centre after which the next candidates stay nearer to it.
const PATIENCE: u64 = 3;
/// How well the multipliers are computed.
const TOLERANCE: f64 = 1e-8;

/// Settings of the method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BundleRule {
    /// Cuts kept; the least useful are merged into one beyond that.
    pub max_cuts: usize,
    /// R in units of 1/‖r‖, the length of the shortest point allowed.
    pub radius: f64,
    /// It has finished when the gap is below this share of the first value.
    pub relative_gap: f64,
}

/// The point reached, and the cuts that led there.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProximalBundle {
    /// r and ‖r‖.
    reference: Vec<f64>,
    reference_size: f64,
    /// x̂.
    centre: Vec<f64>,
    /// F(x̂), once known.
    centre_value: Option<f64>,
    first_value: f64,
    cuts: Vec<Vec<f64>>,
    proximity: f64,
    lower_bound: f64,
    waiting: u64,
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BundleStep {
    /// Length of the step, in units of its direction.
    pub length: f64,
    /// Whether the gap is small enough, or nothing more can be gained.
    pub finished: bool,
}

impl ProximalBundle {
    /// From a point with ⟨x, r⟩ = 1. `floor` is a lower bound of F on the set that is known beforehand.
    pub fn new(reference: Vec<f64>, centre: Vec<f64>, floor: f64) -> Self {
        Self {
            reference_size: norm(&reference),
            reference,
            centre,
            centre_value: None,
            first_value: 0.0,
            cuts: Vec::new(),
            proximity: 0.0,
            lower_bound: floor,
            waiting: 0,
        }
    }

    /// The best point so far.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// ‖r‖.
    pub fn reference_size(&self) -> f64 {
        self.reference_size
    }

    /// Whether this is a bundle of points of so many numbers.
    pub fn fits(&self, n: usize) -> bool {
        [&self.reference, &self.centre].into_iter().chain(&self.cuts).all(|list| list.len() == n)
    }

    /// How far F at the centre can be from its least value on the set, per length of the centre.
    pub fn gap(&self) -> Option<f64> {
        self.centre_value.map(|value| (value - self.lower_bound).max(0.0) / norm(&self.centre))
    }

    /// One step; `subgradient` gives g with F(x) = g·x at a point.
    pub fn step(
        &mut self,
        rule: BundleRule,
        mut subgradient: impl FnMut(&[f64]) -> Result<Vec<f64>>,
    ) -> Result<BundleStep> {
        let Some(centre_value) = self.centre_value else {
            let cut = subgradient(&self.centre)?;
            return Ok(self.begin(rule, cut));
        };
        let Some(multipliers) = self.multipliers()? else {
            // The programme is at the end of its digits; the gap says how far that is from the least.
            return Ok(BundleStep { length: 0.0, finished: true });
        };
        let mut direction = self.aggregate(&multipliers);
        self.lower_bound = self.lower_bound.max(self.least(&direction, rule));
        self.flatten(&mut direction);
        let (length, candidate) = self.candidate(rule, &direction);
        let model = self.cuts.iter().map(|cut| dot(cut, &candidate)).fold(f64::NEG_INFINITY, f64::max);
        let cut = subgradient(&candidate)?;
        let value = dot(&candidate, &cut);
        let promised = centre_value - model;
        self.add_cut(cut, &multipliers, rule.max_cuts);
        if value <= centre_value - SERIOUS * promised && promised > 0.0 {
            if value <= centre_value - 0.5 * promised {
                self.proximity *= 2.0;
            }
            self.centre = candidate;
            self.centre_value = Some(value);
            self.waiting = 0;
        } else {
            self.waiting += 1;
            if self.waiting.is_multiple_of(PATIENCE) {
                self.proximity *= 0.5;
            }
        }
        let gap = self.centre_value.unwrap_or(value) - self.lower_bound;
        let finished =
            gap <= rule.relative_gap * self.first_value.max(f64::MIN_POSITIVE) || length * norm(&direction) == 0.0;
        Ok(BundleStep { length, finished })
    }

    /// Takes the first cut in.
    fn begin(&mut self, rule: BundleRule, cut: Vec<f64>) -> BundleStep {
        let (value, floor) = (dot(&self.centre, &cut), self.lower_bound);
        let mut flat = cut.clone();
        self.flatten(&mut flat);
        let slope = norm(&flat);
        // The first candidate is about as far from the centre as that is from the origin.
        self.proximity = if slope > 0.0 { norm(&self.centre) / slope } else { 1.0 };
        self.centre_value = Some(value);
        // What can be gained is measured from the floor.
        self.first_value = value - floor;
        self.lower_bound = self.least(&cut, rule).max(floor);
        self.cuts.push(cut);
        BundleStep { length: 0.0, finished: slope == 0.0 }
    }

    /// The next point, as far along a direction as the set allows.
    fn candidate(&self, rule: BundleRule, direction: &[f64]) -> (f64, Vec<f64>) {
        let largest = rule.radius / self.reference_size;
        let mut length = self.proximity;
        loop {
            let x: Vec<f64> = self.centre.iter().zip(direction).map(|(x, g)| x - length * g).collect();
            // Negated, so that what is no number ends it too.
            if norm(&x) <= largest || !(length > f64::EPSILON * self.proximity) {
                return (length, x);
            }
            length *= 0.5;
        }
    }

    /// Takes the part along r out.
    fn flatten(&self, x: &mut [f64]) {
        let along = dot(x, &self.reference) / (self.reference_size * self.reference_size);
        x.iter_mut().zip(&self.reference).for_each(|(x, r)| *x -= along * r);
    }

    /// The least of g·x over the set.
    fn least(&self, g: &[f64], rule: BundleRule) -> f64 {
        let radius = (rule.radius * rule.radius - 1.0).max(0.0).sqrt() / self.reference_size;
        let mut flat = g.to_vec();
        self.flatten(&mut flat);
        dot(g, &self.reference) / (self.reference_size * self.reference_size) - radius * norm(&flat)
    }

    /// The multipliers of the cuts, where the solver finds them: min over the simplex of τ/2‖PΣλg‖² − Σλ g·x̂.
    fn multipliers(&self) -> Result<Option<Vec<f64>>> {
        let flat = |g: &Vec<f64>| {
            let mut flat = g.clone();
            self.flatten(&mut flat);
            flat
        };
        let flat: Vec<Vec<f64>> = self.cuts.iter().map(flat).collect();
        let heights: Vec<f64> = self.cuts.iter().map(|g| dot(g, &self.centre)).collect();
        // Scaled, so that the solver's tolerances mean the same for values of any size.
        let scale = heights.iter().fold(f64::MIN_POSITIVE, |most: f64, x| most.max(x.abs()));
        let linear: Vec<f64> = heights.iter().map(|x| -x / scale).collect();
        // Any point of the simplex gives a valid bound, so what the solver left undone only widens the gap.
        least_on_simplex(|i, j| self.proximity * dot(&flat[i], &flat[j]) / scale, &linear, TOLERANCE)
    }

    fn aggregate(&self, multipliers: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.centre.len()];
        for (share, cut) in multipliers.iter().zip(&self.cuts) {
            sum.iter_mut().zip(cut).for_each(|(x, g)| *x += share * g);
        }
        sum
    }

    fn add_cut(&mut self, cut: Vec<f64>, multipliers: &[f64], max_cuts: usize) {
        if self.cuts.len() >= max_cuts {
            let merged = self.aggregate(multipliers);
            let mut order: Vec<usize> = (0..multipliers.len()).collect();
            order.sort_by(|&a, &b| multipliers[b].total_cmp(&multipliers[a]).then(a.cmp(&b)));
            order.truncate(max_cuts.saturating_sub(2).max(1));
            order.sort_unstable();
            self.cuts = order.iter().map(|&j| std::mem::take(&mut self.cuts[j])).collect();
            self.cuts.push(merged);
        }
        self.cuts.push(cut);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    /// F(x) = max(|x₁|, 3|x₂|) on x₁ + x₂ = 1: least where x₁ = 3x₂, at 3/4.
    #[test]
    fn the_least_of_a_piecewise_linear_function_is_found_with_its_gap() {
        let rule = BundleRule { max_cuts: 20, radius: 10.0, relative_gap: 1e-9 };
        let mut bundle = ProximalBundle::new(vec![1.0, 1.0], vec![0.5, 0.5], 0.0);
        let subgradient = |x: &[f64]| {
            Ok(if x[0].abs() >= 3.0 * x[1].abs() { vec![x[0].signum(), 0.0] } else { vec![0.0, 3.0 * x[1].signum()] })
        };
        let steps = (0..60).take_while(|_| !bundle.step(rule, subgradient).unwrap().finished).count();
        assert!(steps < 60, "{:?}", bundle.gap());
        assert!((bundle.centre()[0] - 0.75).abs() < 1e-6 && bundle.gap().unwrap() < 1e-6, "{bundle:?}");
    }
}
