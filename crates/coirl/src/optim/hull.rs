//! The point of a convex hull that is nearest to a target, by steps that mix one more corner in.
//!
//! A [`Hull`] keeps corners, their shares λ and the point x = Σλ_j p_j. [`Hull::mix_in`] with [`Hull::nearest_share`] is a Frank–Wolfe step of
//! ½‖x − t‖² with exact line search; [`Hull::towards_or_away`] takes away steps as well (Guélat & Marcotte 1986), with which the
//! distance falls at a linear rate (Lacoste-Julien & Jaggi 2015); [`Hull::nearest_shares`] solves for all shares at once.

use super::simplex_qp::least_on_simplex;
use super::vectors::{dot, norm};
use crate::error::Result;

/// How well the programme of all shares is solved, relative to the squared length of its longest vector.
const TOLERANCE: f64 = 1e-13;
/// Shares below this are what an interior-point method leaves of zero.
const LEAST_SHARE: f64 = 1e-10;

/// Corners with their shares, and where the mixture is from a target.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hull {
    target: Vec<f64>,
    corners: Vec<Vec<f64>>,
    shares: Vec<f64>,
    mean: Vec<f64>,
}

impl Hull {
    /// Without corners yet.
    pub fn new(target: Vec<f64>) -> Self {
        Self { mean: vec![0.0; target.len()], target, corners: Vec::new(), shares: Vec::new() }
    }

    /// Whether these are points of so many numbers.
    pub fn fits(&self, n: usize) -> bool {
        let all = [&self.target, &self.mean].into_iter().chain(&self.corners);
        self.shares.len() == self.corners.len() && all.into_iter().all(|list| list.len() == n)
    }

    /// t.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// The corners kept.
    pub fn corners(&self) -> &[Vec<f64>] {
        &self.corners
    }

    /// λ of the corners kept.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// t − x.
    pub fn towards_target(&self) -> Vec<f64> {
        self.target.iter().zip(&self.mean).map(|(target, own)| target - own).collect()
    }

    /// ‖t − x‖₂.
    pub fn distance(&self) -> f64 {
        norm(&self.towards_target())
    }

    /// Which of the corners kept this is, up to a difference in every entry.
    pub fn find(&self, corner: &[f64], tolerance: f64) -> Option<usize> {
        let same = |x: &f64, y: &f64| (x - y).abs() <= tolerance;
        self.corners.iter().position(|known| known.iter().zip(corner).all(|(x, y)| same(x, y)))
    }

    /// Keeps a corner, with no share of the mixture yet; its number.
    pub fn keep(&mut self, corner: Vec<f64>) -> usize {
        self.corners.push(corner);
        self.shares.push(0.0);
        self.corners.len() - 1
    }

    /// Mixes the corners kept in new shares.
    pub fn mix(&mut self, shares: Vec<f64>) {
        debug_assert_eq!(shares.len(), self.corners.len());
        let mut mean = vec![0.0; self.target.len()];
        for (corner, share) in self.corners.iter().zip(&shares).filter(|entry| *entry.1 > 0.0) {
            mean.iter_mut().zip(corner).for_each(|(sum, x)| *sum += share * x);
        }
        (self.mean, self.shares) = (mean, shares);
    }

    /// Gives one of the corners kept this much of the mixture, at the expense of all.
    pub fn mix_in(&mut self, corner: usize, share: f64) {
        let mut shares: Vec<f64> = self.shares.iter().map(|old| (1.0 - share) * old).collect();
        shares[corner] += share;
        self.mix(shares);
    }

    /// The share of a new corner that brings the mixture nearest to the target; all of it for the first.
    pub fn nearest_share(&self, corner: &[f64]) -> f64 {
        if self.corners.is_empty() {
            return 1.0;
        }
        let towards: Vec<f64> = corner.iter().zip(&self.mean).map(|(new, own)| new - own).collect();
        self.line_search(&towards).min(1.0)
    }

    /// How far to go along a direction for the point nearest to the target.
    fn line_search(&self, along: &[f64]) -> f64 {
        let squared = dot(along, along);
        if squared > 0.0 { (dot(&self.towards_target(), along) / squared).max(0.0) } else { 0.0 }
    }

    /// A step towards a new corner, or away from the worst of the mixture, whichever promises more; the length of the step. Corners closer
    /// than `tolerance` in every entry are one. `kept` is told of a new corner.
    pub fn towards_or_away(&mut self, corner: Vec<f64>, tolerance: f64, kept: impl FnOnce()) -> f64 {
        let reward = self.towards_target();
        let value = |point: &[f64]| dot(&reward, point);
        let values: Vec<f64> = self.corners.iter().map(|own| value(own)).collect();
        let worst = (1..values.len()).fold(0, |worst, j| if values[j] < values[worst] { j } else { worst });
        let share = self.shares[worst];
        let mixed = value(&self.mean);
        if value(&corner) - mixed >= mixed - values[worst] || share >= 1.0 {
            let length = self.nearest_share(&corner);
            let at = self.find(&corner, tolerance).unwrap_or_else(|| {
                kept();
                self.keep(corner)
            });
            self.mix_in(at, length);
            return length;
        }
        let away: Vec<f64> = self.mean.iter().zip(&self.corners[worst]).map(|(own, worst)| own - worst).collect();
        let (wanted, most) = (self.line_search(&away), share / (1.0 - share));
        let length = wanted.min(most);
        let mut shares: Vec<f64> = self.shares.iter().map(|share| (1.0 + length) * share).collect();
        // A dropped corner has no share, not one of rounding size.
        shares[worst] = if wanted >= most { 0.0 } else { (shares[worst] - length).max(0.0) };
        let total: f64 = shares.iter().sum();
        self.mix(shares.iter().map(|share| share / total).collect());
        length
    }

    /// Forgets corners without a share; which of them were kept.
    pub fn drop_unused(&mut self) -> Vec<bool> {
        let used: Vec<bool> = self.shares.iter().map(|share| *share > 0.0).collect();
        let mut at = used.iter();
        self.corners.retain(|_| at.next().is_some_and(|used| *used));
        self.shares.retain(|share| *share > 0.0);
        used
    }

    /// The shares of the point of the hull that is nearest to the target; nothing where the solver is at the end of its digits.
    pub fn nearest_shares(&self) -> Result<Option<Vec<f64>>> {
        let offset = |point: &Vec<f64>| point.iter().zip(&self.target).map(|(x, target)| x - target).collect();
        let offsets: Vec<Vec<f64>> = self.corners.iter().map(offset).collect();
        // Scaled, so that the solver's tolerances mean the same for points of any size.
        let scale = offsets.iter().map(|offset| dot(offset, offset)).fold(f64::MIN_POSITIVE, f64::max);
        let product = |i: usize, j: usize| dot(&offsets[i], &offsets[j]) / scale;
        let found = least_on_simplex(product, &vec![0.0; offsets.len()], TOLERANCE)?;
        Ok(found.map(|mut shares| {
            shares.iter_mut().filter(|share| **share < LEAST_SHARE).for_each(|share| *share = 0.0);
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
            shares
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The point of a square that is nearest to one beside the middle of an edge: plain steps zigzag, away steps end.
    #[test]
    fn away_steps_find_the_point_of_an_edge() {
        let corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
        let mut hull = Hull::new(vec![0.3, 1.5]);
        let first = hull.keep(corners[1].to_vec());
        hull.mix_in(first, 1.0);
        for _ in 0..60 {
            let towards = hull.towards_target();
            let best = corners.iter().max_by(|a, b| dot(&towards, &a[..]).total_cmp(&dot(&towards, &b[..])));
            let best = best.map_or_else(Vec::new, |corner| corner.to_vec());
            hull.towards_or_away(best, 1e-12, || {});
            hull.drop_unused();
        }
        assert!((hull.distance() - 0.5).abs() < 1e-9, "{hull:?}");
        assert!(hull.corners().iter().all(|corner| corner[1] == 1.0), "{hull:?}");
    }
}
