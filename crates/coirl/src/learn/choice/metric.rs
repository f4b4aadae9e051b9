//! Coordinates in which the penalised likelihood is nearly round, so that L-BFGS needs few steps.
//!
//! The curvature is near H = mean of x(c) x(c)ᵀ ⊗ F_c + λ/n, with F_c the information of a decision about the reward of its context.
//! Where that is too large or takes too long, F_c is replaced by its mean F over a few contexts: then H = S ⊗ F + λ/n with S the mean of
//! x xᵀ, and the eigenvectors of both, which are small, give those of H. With H = B diag(h) Bᵀ, θ = B diag(h)^−½ η. In η half the squared
//! gradient is what a Newton step would gain.

use crate::error::{Error, Result};
use faer::{Mat, Side};

/// Directions that are told less about than this share of the best one are stepped along as if they were told as much.
const LEAST: f64 = 1e-8;
/// What a decision is taken to tell about a feature where nothing is known.
const UNKNOWN: f64 = 0.1;

/// θ as a function of η.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metric {
    basis: Basis,
    /// h^−½, input after input; and that of what follows the rewards.
    scale: Vec<f64>,
    last: f64,
}

/// Eigenvectors, column after column.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Basis {
    /// Of the whole curvature.
    Whole(Vec<Vec<f64>>),
    /// U ⊗ V; without V for the identity.
    Product { inputs: Vec<Vec<f64>>, features: Option<Vec<Vec<f64>>> },
}

impl Metric {
    /// From the whole curvature, row by row, and that of the last parameter.
    pub(super) fn whole(curvature: &[f64], last: f64) -> Result<Self> {
        let (values, vectors) = eigen(curvature)?;
        Ok(Self::scaled(Basis::Whole(vectors), &values, last))
    }

    fn scaled(basis: Basis, curvatures: &[f64], last: f64) -> Self {
        let largest = curvatures.iter().fold(0.0, |most: f64, h| most.max(*h));
        let least = if largest > 0.0 { LEAST * largest } else { 1.0 };
        let scale = curvatures.iter().map(|h| 1.0 / h.max(least).sqrt()).collect();
        Self { basis, scale, last: 1.0 / last.max(least).sqrt() }
    }

    /// From S and F, row by row, the number of features, the penalty of each input per decision, and the curvature of the last parameter.
    /// Where F is not known every feature is taken to be told about as much.
    pub(super) fn product(
        inputs: &[f64],
        features: Option<&[f64]>,
        k: usize,
        penalties: &[f64],
        last: f64,
    ) -> Result<Self> {
        let (by_input, u) = eigen(inputs)?;
        let (by_feature, v) = match features {
            Some(features) => eigen(features).map(|(values, vectors)| (values, Some(vectors)))?,
            None => (vec![UNKNOWN; k], None),
        };
        let mut curvatures = Vec::with_capacity(u.len() * k);
        for (column, s) in u.iter().zip(&by_input) {
            let held: f64 = column.iter().zip(penalties).map(|(u, p)| u * u * p).sum();
            curvatures.extend(by_feature.iter().map(|f| s.max(0.0) * f.max(0.0) + held));
        }
        Ok(Self::scaled(Basis::Product { inputs: u, features: v }, &curvatures, last))
    }

    /// Whether it is for so many inputs and features.
    pub(super) fn fits(&self, inputs: usize, features: usize) -> bool {
        let square = |columns: &[Vec<f64>], n: usize| columns.len() == n && columns.iter().all(|own| own.len() == n);
        let fits = match &self.basis {
            Basis::Whole(vectors) => square(vectors, inputs * features),
            Basis::Product { inputs: u, features: v } => {
                square(u, inputs) && v.as_ref().is_none_or(|own| square(own, features))
            }
        };
        fits && self.scale.len() == inputs * features
    }

    /// θ of η.
    pub(super) fn point(&self, coordinates: &[f64]) -> Vec<f64> {
        let n = self.scale.len();
        let scaled: Vec<f64> = coordinates.iter().zip(&self.scale).map(|(x, scale)| x * scale).collect();
        let mut point = self.turned(&scaled, false);
        point.extend(coordinates[n..].iter().map(|x| x * self.last));
        point
    }

    /// η of θ.
    pub(super) fn coordinates(&self, point: &[f64]) -> Vec<f64> {
        let n = self.scale.len();
        let turned = self.turned(&point[..n], true);
        let mut own: Vec<f64> = turned.iter().zip(&self.scale).map(|(x, scale)| x / scale).collect();
        own.extend(point[n..].iter().map(|x| x / self.last));
        own
    }

    /// The gradient by η, given that by θ.
    pub(super) fn gradient(&self, by_point: &[f64]) -> Vec<f64> {
        let n = self.scale.len();
        let turned = self.turned(&by_point[..n], true);
        let mut own: Vec<f64> = turned.iter().zip(&self.scale).map(|(x, scale)| x * scale).collect();
        own.extend(by_point[n..].iter().map(|x| x * self.last));
        own
    }

    /// The gradient by θ, given that by η.
    pub(super) fn by_point(&self, gradient: &[f64]) -> Vec<f64> {
        let n = self.scale.len();
        let scaled: Vec<f64> = gradient.iter().zip(&self.scale).map(|(x, scale)| x / scale).collect();
        let mut own = self.turned(&scaled, false);
        own.extend(gradient[n..].iter().map(|x| x / self.last));
        own
    }

    /// B x, or its transpose.
    fn turned(&self, x: &[f64], back: bool) -> Vec<f64> {
        let n = self.scale.len();
        match &self.basis {
            Basis::Whole(vectors) => by(vectors, &x[..n], 1, back),
            Basis::Product { inputs, features } => {
                let k = n / inputs.len();
                let half = match features {
                    Some(features) => x[..n].chunks_exact(k).flat_map(|row| by(features, row, 1, back)).collect(),
                    None => x[..n].to_vec(),
                };
                by(inputs, &half, k, back)
            }
        }
    }
}

/// The product of a matrix, column after column, or of its transpose, with rows of so many numbers.
fn by(columns: &[Vec<f64>], x: &[f64], width: usize, back: bool) -> Vec<f64> {
    let n = columns.len();
    let mut out = vec![0.0; n * width];
    for i in 0..n {
        for j in 0..n {
            let share = if back { columns[i][j] } else { columns[j][i] };
            for f in 0..width {
                out[i * width + f] += share * x[j * width + f];
            }
        }
    }
    out
}

/// Eigenvalues and eigenvectors of a symmetric matrix.
pub(super) fn eigen(matrix: &[f64]) -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
    let n = matrix.len().isqrt();
    let own = Mat::from_fn(n, n, |i, j| 0.5 * (matrix[i * n + j] + matrix[j * n + i]));
    let failed = |error| Error::Solver { problem: "curvature of the likelihood", reason: format!("{error:?}") };
    let found = own.self_adjoint_eigen(Side::Lower).map_err(failed)?;
    let values = (0..n).map(|i| found.S()[i]).collect();
    Ok((values, (0..n).map(|j| (0..n).map(|i| found.U()[(i, j)]).collect()).collect()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn coordinates_go_there_and_back_and_make_the_curvature_round() {
        let (s, f) = ([2.0, 0.5, 0.5, 1.0], [3.0, -1.0, 0.2, -1.0, 2.0, 0.0, 0.2, 0.0, 0.1]);
        let h = |i: usize, j: usize| {
            let own = if i == j { 0.3 } else { 0.0 };
            s[(i / 3) * 2 + j / 3] * f[(i % 3) * 3 + j % 3] + own
        };
        let all: Vec<f64> = (0..36).map(|at| h(at / 6, at % 6)).collect();
        let product = Metric::product(&s, Some(&f), 3, &[0.3, 0.3], 4.0).unwrap();
        for metric in [product, Metric::whole(&all, 4.0).unwrap()] {
            assert!(metric.fits(2, 3) && !metric.fits(3, 3));
            let point: Vec<f64> = (0..7).map(|i| f64::from(i) - 2.5).collect();
            let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9) && a.len() == b.len();
            assert!(near(&point, &metric.point(&metric.coordinates(&point))));
            assert!(near(&point, &metric.by_point(&metric.gradient(&point))));
            // In the new coordinates H is the identity: the gradient of ½ θᵀHθ is η.
            let mut gradient: Vec<f64> = (0..6).map(|i| (0..6).map(|j| h(i, j) * point[j]).sum()).collect();
            gradient.push(4.0 * point[6]);
            let (found, wanted) = (metric.gradient(&gradient), metric.coordinates(&point));
            assert!(near(&found, &wanted), "{found:?} {wanted:?}");
        }
    }
}
