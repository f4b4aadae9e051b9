//! Centres of the cone {W : aᵢ·W ≥ 0 for all i} of unit-length cuts aᵢ inside the unit ball.
//!
//! | centre | definition | computed by |
//! |---|---|---|
//! | analytic | max Σ log aᵢ·W + log(1 − ‖W‖²) | damped Newton from the Chebyshev centre |
//! | Chebyshev | max r: aᵢ·W ≥ r, ‖W‖₂ ≤ 1 | a second-order cone programme |
//!
//! The analytic centre is a matter of direction alone: with W = ρu, ‖u‖ = 1, its objective is Σ log aᵢ·u + m log ρ +
//! log(1 − ρ²), so ρ² = m/(m + 2) whatever u is, and the same u minimises ½‖W‖² − Σ log aᵢ·W. That function is
//! self-concordant and its Hessian is never below the identity, so Newton's method on it converges from every
//! interior point, also with fewer cuts than parameters. A step costs O(m·n² + n³) for m cuts in n dimensions.
//!
//! Cuts that no W satisfies together leave the cone without an interior. Then W is the one of length one for which
//! the mean of the q smallest aᵢ·W is largest, with the smallest power of two q (or q = m) for which it is positive
//! (q = 1 is the Chebyshev centre, q = m the direction of the mean cut), and the analytic centre is that of the cuts
//! this W satisfies. The caller says what is violated, and by how much.

use super::vectors::{dot, norm, normalise};
use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{NonnegativeConeT, SecondOrderConeT};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver};
use faer::linalg::solvers::Solve;

/// Which point of the cone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Centre {
    /// Where the product of the distances to all cuts is largest.
    #[default]
    Analytic,
    /// Where the distance to the nearest cut is largest.
    Chebyshev,
}

/// Margins below this are within the rounding errors of the feature expectations that cuts are made of.
pub(crate) const LEAST_MARGIN: f64 = 1e-10;

/// Newton's method stops at this decrement: the distance left is its square.
const DECREMENT: f64 = 1e-9;

/// Far more steps than a self-concordant function with thousands of terms needs.
const NEWTON_STEPS: usize = 500;

impl Centre {
    /// The centre of the cuts, each of unit length; none where the cuts cancel, so that no direction is better than
    /// another.
    pub(crate) fn of(self, cuts: &[Vec<f64>]) -> Option<Vec<f64>> {
        let (start, inside) = deepest(cuts)?;
        Some(match self {
            Centre::Chebyshev => start,
            Centre::Analytic if inside => analytic(&cuts.iter().map(Vec::as_slice).collect::<Vec<_>>(), start),
            Centre::Analytic => {
                let satisfied: Vec<&[f64]> =
                    cuts.iter().map(Vec::as_slice).filter(|a| dot(a, &start) > LEAST_MARGIN).collect();
                if satisfied.is_empty() { start } else { analytic(&satisfied, start) }
            }
        })
    }
}

/// The direction of largest margin, and whether the margin is positive; with contradictory cuts the substitute.
fn deepest(cuts: &[Vec<f64>]) -> Option<(Vec<f64>, bool)> {
    let m = cuts.len();
    let mut worst = 1;
    loop {
        let mut point = largest_margin(cuts, worst)?;
        normalise(&mut point);
        let mut margins: Vec<f64> = cuts.iter().map(|a| dot(a, &point)).collect();
        margins.sort_by(f64::total_cmp);
        // Decided by the point itself, not by what the solver says of it.
        let mean = margins[..worst].iter().sum::<f64>() / worst as f64;
        if mean > LEAST_MARGIN && norm(&point) > 0.0 {
            return Some((point, margins[0] > LEAST_MARGIN));
        }
        if worst == m {
            return None;
        }
        worst = (2 * worst).min(m);
    }
}

/// max r − Σsᵢ/q: aᵢ·W ≥ r − sᵢ, s ≥ 0, ‖W‖₂ ≤ 1, whose value is the mean of the q smallest aᵢ·W. For q = 1 no s is
/// needed, for q = m the answer is known.
fn largest_margin(cuts: &[Vec<f64>], worst: usize) -> Option<Vec<f64>> {
    let (m, n) = (cuts.len(), cuts.first()?.len());
    if worst == m {
        let mut mean = vec![0.0; n];
        cuts.iter().for_each(|a| mean.iter_mut().zip(a).for_each(|(sum, x)| *sum += x / m as f64));
        return Some(mean);
    }
    let slacks = if worst == 1 { 0 } else { m };
    let columns = n + 1 + slacks;
    // Rows: m inequalities, the signs of the slacks, then (1, W) in the second-order cone. The form is b − Ax ∈ K.
    let rows = m + slacks + n + 1;
    let (mut at_row, mut at_column, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    let mut put = |row: usize, column: usize, entry: f64| {
        at_row.push(row);
        at_column.push(column);
        entries.push(entry);
    };
    for (i, a) in cuts.iter().enumerate() {
        a.iter().enumerate().for_each(|(j, &x)| put(i, j, -x));
        put(i, n, 1.0);
        if slacks > 0 {
            put(i, n + 1 + i, -1.0);
            put(m + i, n + 1 + i, -1.0);
        }
    }
    (0..n).for_each(|j| put(m + slacks + 1 + j, j, -1.0));
    let constraints = CscMatrix::new_from_triplets(rows, columns, at_row, at_column, entries);
    let mut limits = vec![0.0; rows];
    limits[m + slacks] = 1.0;
    let mut costs = vec![0.0; columns];
    costs[n] = -1.0;
    costs[n + 1..].fill(1.0 / worst as f64);
    let cones = [NonnegativeConeT(m + slacks), SecondOrderConeT(n + 1)];
    let settings = DefaultSettings {
        verbose: false,
        max_threads: 1,
        tol_gap_abs: 1e-11,
        tol_gap_rel: 1e-11,
        tol_feas: 1e-11,
        ..DefaultSettings::default()
    };
    let quadratic = CscMatrix::zeros((columns, columns));
    let mut solver = DefaultSolver::new(&quadratic, &costs, &constraints, &limits, &cones, settings).ok()?;
    solver.solve();
    let point = solver.solution.x.get(..n)?.to_vec();
    point.iter().all(|x| x.is_finite()).then_some(point)
}

/// Newton's method on ½‖W‖² − Σ log aᵢ·W from an interior point.
fn analytic(cuts: &[&[f64]], start: Vec<f64>) -> Vec<f64> {
    let (m, n) = (cuts.len() as f64, start.len());
    let objective = |w: &[f64]| {
        let logs: f64 = cuts.iter().map(|a| dot(a, w)).map(|x| if x > 0.0 { x.ln() } else { f64::NEG_INFINITY }).sum();
        0.5 * dot(w, w) - logs
    };
    // On every ray the minimum is at ‖W‖² = m.
    let mut w = start;
    w.iter_mut().for_each(|x| *x *= m.sqrt());
    let mut value = objective(&w);
    for _ in 0..NEWTON_STEPS {
        let inverse: Vec<f64> = cuts.iter().map(|a| 1.0 / dot(a, &w)).collect();
        let mut descent: Vec<f64> = w.iter().map(|x| -x).collect();
        let mut hessian = faer::Mat::<f64>::identity(n, n);
        for (a, &u) in cuts.iter().zip(&inverse) {
            for j in 0..n {
                descent[j] += u * a[j];
                let scale = u * u * a[j];
                (j..n).for_each(|i| hessian[(i, j)] += scale * a[i]);
            }
        }
        let Ok(factor) = hessian.llt(faer::Side::Lower) else { break };
        let direction = factor.solve(faer::ColRef::from_slice(&descent));
        let direction: Vec<f64> = direction.iter().copied().collect();
        let decrement = dot(&direction, &descent).max(0.0).sqrt();
        // The step 1/(1 + λ) stays inside and descends by at least λ − log(1 + λ); longer ones are tried first.
        let safe = 1.0 / (1.0 + decrement);
        let mut length = 1.0;
        loop {
            let next: Vec<f64> = w.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let reached = objective(&next);
            if reached <= value - 0.25 * length * decrement * decrement || length <= safe {
                // At rounding level the value may not fall any more; the point is then as good as it gets.
                if reached.is_finite() && (reached <= value || decrement < 1e-4) {
                    (w, value) = (next, reached);
                }
                break;
            }
            length = (0.5 * length).max(safe);
        }
        if decrement <= DECREMENT {
            break;
        }
    }
    let radius = (m / (m + 2.0)).sqrt() / norm(&w);
    w.iter_mut().for_each(|x| *x *= radius);
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64], tolerance: f64) {
        assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= tolerance), "{found:?} is not {expected:?}");
    }

    #[test]
    fn one_cut_alone_is_its_own_centre() {
        let cut = vec![0.6, -0.8];
        // max log ρ + log(1 − ρ²) is at ρ² = 1/3.
        let centre = Centre::Analytic.of(std::slice::from_ref(&cut)).unwrap_or_default();
        close(&centre, &[0.6 / 3_f64.sqrt(), -0.8 / 3_f64.sqrt()], 1e-12);
        let centre = Centre::Chebyshev.of(std::slice::from_ref(&cut)).unwrap_or_default();
        close(&centre, &cut, 1e-12);
    }

    #[test]
    fn an_orthant_is_centred_on_its_diagonal() {
        for n in [2_usize, 5, 9] {
            let cuts: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
            let analytic = Centre::Analytic.of(&cuts).unwrap_or_default();
            close(&analytic, &vec![1.0 / ((n + 2) as f64).sqrt(); n], 1e-9);
            let chebyshev = Centre::Chebyshev.of(&cuts).unwrap_or_default();
            close(&chebyshev, &vec![1.0 / (n as f64).sqrt(); n], 1e-7);
        }
    }

    #[test]
    fn two_cuts_in_the_plane_are_bisected_and_a_repeated_one_pushes() {
        // Angles from the first cut: the margins are cos θ and cos(θ − 2β) for cuts 2β apart.
        let beta = 0.7_f64;
        let (a, b) = (vec![1.0, 0.0], vec![(2.0 * beta).cos(), (2.0 * beta).sin()]);
        for centre in [Centre::Analytic, Centre::Chebyshev] {
            let found = centre.of(&[a.clone(), b.clone()]).unwrap_or_default();
            assert!((found[1].atan2(found[0]) - beta).abs() < 1e-7);
        }
        // Orthogonal cuts with weights 2 and 1: max 2 log cos θ + log sin θ is at tan² θ = 1/2.
        let (a, b) = (vec![1.0, 0.0], vec![0.0, 1.0]);
        let found = Centre::Analytic.of(&[a.clone(), a, b]).unwrap_or_default();
        assert!(((found[1] / found[0]).powi(2) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_thin_cone_still_has_a_centre() {
        let thin = 1e-6_f64;
        let cuts = vec![vec![thin.sin(), thin.cos(), 0.0], vec![thin.sin(), -thin.cos(), 0.0], vec![0.0, 0.0, 1.0]];
        let found = Centre::Analytic.of(&cuts).unwrap_or_default();
        assert!(cuts.iter().all(|a| dot(a, &found) > 0.0));
        // Direction (√2, 0, 1)/√3 by symmetry: max 2 log x + log z.
        assert!((found[0] / found[2] - 2_f64.sqrt()).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn contradictory_cuts_have_a_substitute_or_no_centre() {
        let a = vec![1.0, 0.0];
        let opposite = vec![-1.0, 0.0];
        assert_eq!(Centre::Analytic.of(&[a.clone(), opposite.clone()]), None);
        for centre in [Centre::Analytic, Centre::Chebyshev] {
            let cuts = [a.clone(), opposite.clone(), a.clone(), vec![0.0, 1.0]];
            let found = centre.of(&cuts).unwrap_or_default();
            // At most the single opposite cut is given up, never the one nobody contradicts.
            assert!(cuts.iter().filter(|cut| dot(cut, &found) < -1e-9).count() <= 1, "{found:?}");
            assert!(found[1] > 0.0);
        }
    }
}
