//! Principal components of the dynamics: a few numbers per state, alike for states whose actions lead to the same places.
//!
//! State s is described by its transition rows side by side, {P(· | s, a)}_a, |S|·|A| numbers of which few are not zero (an
//! inadmissible action has a row of zeros). The components are those of the centred matrix X of these descriptions, found from
//! the eigenvectors of JXXᵀJ, J = I − 11ᵀ/|S|, by subspace iteration with Rayleigh–Ritz steps (Halko, Martinsson and Tropp 2011)
//! from a fixed random start. Nothing of size |S|² or |S|·|S||A| is formed. Cost: two products per non-zero, component and
//! iteration. Where eigenvalues are equal, which vectors of their space are returned is arbitrary but always the same.

use crate::error::{Error, Result};
use crate::model::Kernel;
use crate::random::stream;
use faer::Mat;
use rand::RngExt;

/// Vectors iterated beyond those that are wanted; they speed up the last of those.
const OVERSAMPLING: usize = 8;
const MAX_ITERATIONS: usize = 40;
/// The eigenvalues have settled when none of those wanted changes by more than this share of the largest.
const SETTLED: f64 = 1e-13;
/// Eigenvalues below this share of the largest are rounding.
const RANK_TOLERANCE: f64 = 1e-10;

/// Scores of every state on the leading components.
#[derive(Debug, Clone, PartialEq)]
pub struct PrincipalComponents {
    /// Row-major `[n_states, n_components]`; the first column varies most. Of each column, the entry of largest size is positive.
    pub scores: Vec<f64>,
    /// The variance of every column, descending.
    pub variances: Vec<f64>,
    /// The variance of the descriptions altogether.
    pub total_variance: f64,
}

impl PrincipalComponents {
    /// At most `most` components of a kernel's dynamics, and no more than explain `share` of the variance.
    pub fn of_dynamics(kernel: &Kernel, most: usize, share: f64) -> Result<Self> {
        let n = kernel.n_states();
        let rows = RowsByAction::new(kernel);
        let total = rows.total_variance();
        let width = most.saturating_add(OVERSAMPLING).min(n);
        if most == 0 || total <= 0.0 {
            return Ok(Self { scores: Vec::new(), variances: Vec::new(), total_variance: total });
        }
        let mut rng = stream(0, "principal components", 0);
        let mut basis = orthonormal(Mat::from_fn(n, width, |_, _| rng.random::<f64>() - 0.5));
        let mut last: Vec<f64> = Vec::new();
        for _ in 0..MAX_ITERATIONS {
            let image = rows.gram(&basis);
            let projected = basis.transpose() * &image;
            let values = eigenvalues(&projected)?;
            let wanted = most.min(width);
            let settled = last.iter().zip(&values).take(wanted).all(|(x, y)| (x - y).abs() <= SETTLED * values[0]);
            basis = orthonormal(image);
            if settled && !last.is_empty() {
                break;
            }
            last = values;
        }
        let projected = basis.transpose() * rows.gram(&basis);
        let eigen = symmetric(&projected).self_adjoint_eigen(faer::Side::Lower).map_err(|error| Error::Solver {
            problem: "the eigenvalues of the dynamics",
            reason: format!("{error:?}"),
        })?;
        // Ascending in the decomposition, descending here.
        let order: Vec<usize> = (0..width).rev().collect();
        let values: Vec<f64> = order.iter().map(|&j| eigen.S()[j].max(0.0)).collect();
        let mut kept = 0;
        let mut explained = 0.0;
        while kept < most.min(width)
            && values[kept] > RANK_TOLERANCE * values[0]
            && explained < share * total * n as f64
        {
            explained += values[kept];
            kept += 1;
        }
        let vectors = &basis * eigen.U();
        let mut scores = vec![0.0; n * kept];
        for (column, &j) in order.iter().take(kept).enumerate() {
            let of_state = |s: usize| vectors[(s, j)] * values[column].sqrt();
            let largest = (0..n).map(of_state).fold(0.0, |most: f64, x| if x.abs() > most.abs() { x } else { most });
            (0..n).for_each(|s| scores[s * kept + column] = largest.signum() * of_state(s));
        }
        let variances = values[..kept].iter().map(|value| value / n as f64).collect();
        Ok(Self { scores, variances, total_variance: total })
    }

    /// Number of components.
    pub fn len(&self) -> usize {
        self.variances.len()
    }

    /// Whether all states are alike.
    pub fn is_empty(&self) -> bool {
        self.variances.is_empty()
    }
}

/// The transition rows of each action, with their states.
struct RowsByAction<'a> {
    kernel: &'a Kernel,
    /// Per action: state and pair.
    rows: Vec<Vec<(usize, usize)>>,
}

impl<'a> RowsByAction<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let mut rows = vec![Vec::new(); kernel.n_actions()];
        for s in 0..kernel.n_states() {
            for pair in kernel.pairs().of_state(s) {
                rows[kernel.pairs().action(pair).index()].push((s, pair));
            }
        }
        Self { kernel, rows }
    }

    /// trace(JXXᵀJ) / |S|.
    fn total_variance(&self) -> f64 {
        let n = self.kernel.n_states() as f64;
        let mut squares = 0.0;
        for rows in &self.rows {
            let mut sums = vec![0.0; self.kernel.n_states()];
            for &(_, pair) in rows {
                for (next, p) in self.kernel.successors(pair) {
                    squares += p * p;
                    sums[next] += p;
                }
            }
            squares -= sums.iter().map(|sum| sum * sum).sum::<f64>() / n;
        }
        squares.max(0.0) / n
    }

    /// JXXᵀJ Y.
    fn gram(&self, y: &Mat<f64>) -> Mat<f64> {
        let y = centred(y.clone());
        let (n, width) = (y.nrows(), y.ncols());
        // Rows in one piece each: a row of y is read and written as a whole.
        let by_state: Vec<f64> = (0..n * width).map(|i| y[(i / width, i % width)]).collect();
        let mut image = vec![0.0; n * width];
        let mut reached = vec![0.0; n * width];
        let add = |to: &mut [f64], scale: f64, from: &[f64]| to.iter_mut().zip(from).for_each(|(x, y)| *x += scale * y);
        for rows in &self.rows {
            reached.fill(0.0);
            for &(s, pair) in rows {
                for (next, p) in self.kernel.successors(pair) {
                    add(&mut reached[next * width..][..width], p, &by_state[s * width..][..width]);
                }
            }
            for &(s, pair) in rows {
                for (next, p) in self.kernel.successors(pair) {
                    add(&mut image[s * width..][..width], p, &reached[next * width..][..width]);
                }
            }
        }
        centred(Mat::from_fn(n, width, |s, j| image[s * width + j]))
    }
}

/// Columns less their means.
fn centred(mut columns: Mat<f64>) -> Mat<f64> {
    let n = columns.nrows();
    for j in 0..columns.ncols() {
        let mean = (0..n).map(|s| columns[(s, j)]).sum::<f64>() / n as f64;
        (0..n).for_each(|s| columns[(s, j)] -= mean);
    }
    columns
}

/// An orthonormal basis of the columns.
fn orthonormal(columns: Mat<f64>) -> Mat<f64> {
    columns.qr().compute_thin_Q()
}

/// Without what rounding leaves of asymmetry.
fn symmetric(matrix: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| 0.5 * (matrix[(i, j)] + matrix[(j, i)]))
}

/// Eigenvalues, descending.
fn eigenvalues(matrix: &Mat<f64>) -> Result<Vec<f64>> {
    let values = symmetric(matrix).self_adjoint_eigenvalues(faer::Side::Lower);
    let mut values = values
        .map_err(|error| Error::Solver { problem: "the eigenvalues of the dynamics", reason: format!("{error:?}") })?;
    values.reverse();
    Ok(values)
}
