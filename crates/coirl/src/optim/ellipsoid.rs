//! The set of mappings that may still be the truth: an ellipsoid, halved by cuts through its centre.
//!
//! {x : (x − u)ᵀQ⁻¹(x − u) ≤ 1}. A cut keeps the half with aᵀx ≥ aᵀu and replaces it by the smallest ellipsoid around
//! it. What is stored is a factor, Q = BBᵀ, so that Q stays symmetric and positive whatever the rounding: with n
//! dimensions and b = Bᵀa/‖Bᵀa‖,
//!
//! ```text
//! u ← u + Bb/(n + 1),      B ← σB(I − bbᵀ) + (n/(n + 1))·Bbbᵀ,      σ = n/√(n² − 1),
//! ```
//!
//! which for n = 1 is bisection. The logarithm of the volume changes by (n − 1)·log σ − log(1 + 1/n) ≤ −1/(2(n + 1))
//! at every cut, whatever its direction. A cut costs O(n²), asking whether a point is inside O(n³).

use super::vectors::{norm, norm_inf};
use crate::error::{Error, Result, check_finite, check_length, check_room};
use faer::linalg::solvers::Solve;

/// An ellipsoid that began as a ball around the unit box.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Parts")]
pub struct EllipsoidSet {
    centre: Vec<f64>,
    /// B, row-major.
    factor: Vec<f64>,
    start_radius: f64,
    log_volume: f64,
    cuts: u64,
}

/// What is read from a checkpoint, before it is known to fit together.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    centre: Vec<f64>,
    factor: Vec<f64>,
    start_radius: f64,
    log_volume: f64,
    cuts: u64,
}

impl TryFrom<Parts> for EllipsoidSet {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        let Parts { centre, factor, start_radius, log_volume, cuts } = parts;
        check_length("factor of the ellipsoid", centre.len() * centre.len(), factor.len())?;
        Ok(Self { centre, factor, start_radius, log_volume, cuts })
    }
}

impl EllipsoidSet {
    /// The smallest ball with this centre that contains the box [−1, 1]ⁿ: of radius √n around zero.
    pub fn around_the_box(centre: Vec<f64>) -> Result<Self> {
        check_finite("centre of the ellipsoid", &centre)?;
        let n = centre.len();
        check_room("parameters² of the ellipsoid", &[n, n])?;
        let start_radius = norm(&centre.iter().map(|u| 1.0 + u.abs()).collect::<Vec<_>>());
        check_finite("radius of the ellipsoid", &[start_radius])?;
        let mut factor = vec![0.0; n * n];
        factor.iter_mut().step_by(n + 1).for_each(|x| *x = start_radius);
        let log_volume = log_unit_ball(n) + n as f64 * start_radius.ln();
        Ok(Self { centre, factor, start_radius, log_volume, cuts: 0 })
    }

    /// u.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// B with Q = BBᵀ, row-major.
    pub fn factor(&self) -> &[f64] {
        &self.factor
    }

    /// Radius of the ball that it began as.
    pub fn start_radius(&self) -> f64 {
        self.start_radius
    }

    /// Natural logarithm of the volume, followed from cut to cut.
    pub fn log_volume(&self) -> f64 {
        self.log_volume
    }

    /// Natural logarithm of the volume at the start.
    pub fn start_log_volume(&self) -> f64 {
        log_unit_ball(self.centre.len()) + self.centre.len() as f64 * self.start_radius.ln()
    }

    /// Cuts made so far.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Keeps the half with aᵀx ≥ aᵀu. Returns whether there was anything to cut: not where a is zero, nor where the
    /// ellipsoid is narrower along a than the rounding of its factor.
    pub fn cut(&mut self, normal: &[f64]) -> bool {
        let n = self.centre.len();
        let scale = norm_inf(normal);
        if !(scale > 0.0 && scale.is_finite()) {
            return false;
        }
        let normal: Vec<f64> = normal.iter().map(|a| a / scale).collect();
        let mut direction = vec![0.0; n];
        let mut squares = 0.0;
        for (a, row) in normal.iter().zip(self.factor.chunks_exact(n)) {
            for (sum, x) in direction.iter_mut().zip(row) {
                *sum += a * x;
                squares += x * x;
            }
        }
        let size = norm(&direction);
        if !(size > n as f64 * f64::EPSILON * squares.sqrt() * norm(&normal)) {
            return false;
        }
        direction.iter_mut().for_each(|b| *b /= size);
        let Growth { stretch, shrink, log_volume } = Growth::in_dimensions(n);
        for (u, row) in self.centre.iter_mut().zip(self.factor.chunks_exact_mut(n)) {
            let along: f64 = row.iter().zip(&direction).map(|(x, b)| x * b).sum();
            *u += along / (n as f64 + 1.0);
            let change = (shrink - stretch) * along;
            row.iter_mut().zip(&direction).for_each(|(x, b)| *x = stretch * *x + change * b);
        }
        self.log_volume += log_volume;
        self.cuts += 1;
        true
    }

    /// ‖B⁻¹(x − u)‖₂: at most 1 for the points of the ellipsoid.
    pub fn distance(&self, point: &[f64]) -> Result<f64> {
        let n = self.centre.len();
        check_length("point", n, point.len())?;
        let offset: Vec<f64> = point.iter().zip(&self.centre).map(|(x, u)| x - u).collect();
        let factor = faer::Mat::from_fn(n, n, |i, j| self.factor[i * n + j]);
        let inner = factor.partial_piv_lu().solve(faer::ColRef::from_slice(&offset));
        Ok(norm(&inner.iter().copied().collect::<Vec<_>>()))
    }

    /// By how much the log-volume must have fallen: 1/(2(n + 1)) per cut.
    pub(crate) fn least_fall(&self) -> f64 {
        self.cuts as f64 / (2.0 * (self.centre.len() as f64 + 1.0))
    }
}

/// What a cut does to the factor and the volume.
struct Growth {
    /// Across the cut's direction.
    stretch: f64,
    /// Along it.
    shrink: f64,
    log_volume: f64,
}

impl Growth {
    fn in_dimensions(n: usize) -> Self {
        let n = n as f64;
        // In one dimension nothing lies across.
        let log_stretch = if n > 1.0 { -0.5 * (-1.0 / (n * n)).ln_1p() } else { 0.0 };
        let log_volume = (n - 1.0) * log_stretch - (1.0 / n).ln_1p();
        Self { stretch: log_stretch.exp(), shrink: n / (n + 1.0), log_volume }
    }
}

/// log of the volume of the unit ball: V_n = V_{n−2}·2π/n.
pub(crate) fn log_unit_ball(n: usize) -> f64 {
    let first = if n.is_multiple_of(2) { 0.0 } else { 2.0_f64.ln() };
    (1..=n).rev().step_by(2).filter(|&m| m > 1).map(|m| (std::f64::consts::TAU / m as f64).ln()).sum::<f64>() + first
}

/// 2n(n + 1)·log x: how many cuts take a ball of radius r to one of radius r/x.
pub(crate) fn cuts_to_shrink(n: usize, ratio: f64) -> f64 {
    let n = n as f64;
    if ratio > 1.0 { 2.0 * n * (n + 1.0) * ratio.ln() } else { 0.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::random::stream;
    use rand::RngExt;

    fn random(n: usize, number: u64) -> Vec<f64> {
        let mut rng = stream(11, "cut", number);
        (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    #[test]
    fn the_unit_ball_has_its_textbook_volume() {
        let pi = std::f64::consts::PI;
        for (n, volume) in [(1, 2.0), (2, pi), (3, 4.0 / 3.0 * pi), (4, pi * pi / 2.0), (5, 8.0 / 15.0 * pi * pi)] {
            assert!((log_unit_ball(n).exp() - volume).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn one_dimension_is_bisection() {
        let mut set = EllipsoidSet::around_the_box(vec![0.0]).unwrap();
        assert!(set.cut(&[3.0]));
        assert_eq!((set.centre()[0], set.factor()[0]), (0.5, 0.5));
        assert!(set.cut(&[-1e-3]));
        assert_eq!((set.centre()[0], set.factor()[0]), (0.25, 0.25));
        assert!((set.log_volume() - 0.5_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn the_factor_follows_the_printed_update_of_q() {
        let n = 4;
        let mut set = EllipsoidSet::around_the_box(vec![0.0; n]).unwrap();
        let product = |factor: &[f64]| {
            faer::Mat::from_fn(n, n, |i, j| (0..n).map(|l| factor[i * n + l] * factor[j * n + l]).sum())
        };
        let mut q: faer::Mat<f64> = product(set.factor());
        let mut centre = faer::Col::<f64>::zeros(n);
        for t in 0..30 {
            let a = random(n, t);
            assert!(set.cut(&a));
            let a = faer::Col::from_fn(n, |i| a[i]);
            let tilde = &a * (-1.0 / (a.transpose() * &q * &a).sqrt());
            let moved = &q * &tilde;
            centre -= &moved * (1.0 / (n as f64 + 1.0));
            let inner = &q - (&moved * moved.transpose()) * faer::Scale(2.0 / (n as f64 + 1.0));
            q = inner * faer::Scale((n * n) as f64 / (n * n - 1) as f64);
            let own = product(set.factor());
            assert!((&own - &q).norm_max() < 1e-9 * q.norm_max());
            assert!((0..n).all(|i| (centre[i] - set.centre()[i]).abs() < 1e-10));
        }
    }

    #[test]
    fn the_volume_that_is_followed_is_that_of_the_factor() {
        for n in [1, 2, 3, 9] {
            let mut set = EllipsoidSet::around_the_box(vec![0.0; n]).unwrap();
            for t in 0..60 {
                assert!(set.cut(&random(n, t)));
            }
            let determinant = faer::Mat::from_fn(n, n, |i, j| set.factor()[i * n + j]).determinant().abs();
            assert!((set.log_volume() - log_unit_ball(n) - determinant.ln()).abs() < 1e-9, "{n}");
            assert!(set.start_log_volume() - set.log_volume() >= set.least_fall());
        }
    }

    #[test]
    fn the_box_is_inside_whatever_the_centre() {
        for centre in [vec![0.0; 3], vec![0.5, -2.0, 0.0]] {
            let set = EllipsoidSet::around_the_box(centre).unwrap();
            for corner in 0..8 {
                let point: Vec<f64> = (0..3).map(|i| if corner >> i & 1 == 1 { 1.0 } else { -1.0 }).collect();
                assert!(set.distance(&point).unwrap() <= 1.0 + 1e-12);
            }
        }
    }

    #[test]
    fn nothing_is_cut_by_nothing() {
        let mut set = EllipsoidSet::around_the_box(vec![0.0; 2]).unwrap();
        let before = set.clone();
        for normal in [[0.0, 0.0], [f64::NAN, 0.0], [f64::INFINITY, 1.0]] {
            assert!(!set.cut(&normal));
        }
        assert_eq!(set, before);
        // The same cut again and again: the centre runs into the wall and the set becomes flat, then stays finite.
        for _ in 0..1000 {
            set.cut(&[1e-300, 1e-300]);
        }
        assert!(set.cuts() > 30 && set.cuts() < 1000);
        assert!(set.factor().iter().chain(set.centre()).all(|x| x.is_finite()));
    }

    #[test]
    fn a_damaged_set_is_refused() {
        let set = EllipsoidSet::around_the_box(vec![0.0; 2]).unwrap();
        let mut value = serde_json::to_value(&set).unwrap();
        assert_eq!(serde_json::from_value::<EllipsoidSet>(value.clone()).unwrap(), set);
        value["factor"] = serde_json::json!([1.0, 0.0, 0.0]);
        assert!(serde_json::from_value::<EllipsoidSet>(value).is_err());
    }
}
