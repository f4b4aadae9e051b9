//! Quadratic programmes over the simplex: min ½λᵀQλ + qᵀλ over λ ≥ 0, Σλ = 1, by an interior-point method.

use crate::error::{Error, Result};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SupportedConeT};

/// The minimiser, to the solver's `tolerance`, as a point of the simplex; none where the solver is at the end of its digits.
/// `quadratic` gives the entries of the positive semidefinite Q on and above the diagonal.
pub fn least_on_simplex(
    quadratic: impl Fn(usize, usize) -> f64,
    linear: &[f64],
    tolerance: f64,
) -> Result<Option<Vec<f64>>> {
    let n = linear.len();
    if n == 1 {
        return Ok(Some(vec![1.0]));
    }
    let (mut values, mut rows, mut starts) = (Vec::new(), Vec::new(), vec![0]);
    for j in 0..n {
        for i in 0..=j {
            values.push(quadratic(i, j));
            rows.push(i);
        }
        starts.push(values.len());
    }
    let quadratic = CscMatrix::new(n, n, starts, rows, values);
    // Σλ = 1, λ ≥ 0.
    let columns: Vec<usize> = (0..=n).map(|j| 2 * j).collect();
    let places: Vec<usize> = (0..n).flat_map(|j| [0, j + 1]).collect();
    let constraints = CscMatrix::new(n + 1, n, columns, places, [1.0, -1.0].repeat(n));
    let mut bounds = vec![0.0; n + 1];
    bounds[0] = 1.0;
    let cones = [SupportedConeT::ZeroConeT(1), SupportedConeT::NonnegativeConeT(n)];
    let refuse = |reason: String| Error::Solver { problem: "a quadratic programme over the simplex", reason };
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .max_threads(1)
        .tol_gap_abs(tolerance)
        .tol_gap_rel(tolerance)
        .tol_feas(tolerance)
        .build()
        .map_err(|error| refuse(error.to_string()))?;
    let mut solver = DefaultSolver::new(&quadratic, linear, &constraints, &bounds, &cones, settings)
        .map_err(|error| refuse(error.to_string()))?;
    solver.solve();
    let mut found: Vec<f64> = solver.solution.x.iter().map(|x| x.max(0.0)).collect();
    let total: f64 = found.iter().sum();
    if !(total > 0.5 && total.is_finite()) {
        return Ok(None);
    }
    found.iter_mut().for_each(|x| *x /= total);
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_point_of_a_triangle() {
        // Corners (1, 0), (0, 1) and (3, 3): the point nearest to the origin is the middle of the first two.
        let corners = [[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]];
        let product = |i: usize, j: usize| corners[i][0] * corners[j][0] + corners[i][1] * corners[j][1];
        let found = least_on_simplex(product, &[0.0; 3], 1e-10).ok().flatten().unwrap_or_default();
        assert!((found[0] - 0.5).abs() < 1e-7 && (found[1] - 0.5).abs() < 1e-7 && found[2] < 1e-7, "{found:?}");
    }
}
