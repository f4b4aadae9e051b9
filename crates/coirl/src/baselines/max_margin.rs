//! Apprenticeship learning by the maximum margin (Abbeel & Ng 2004, section 3).
//!
//! ```text
//! W_t = argmax over ‖w‖₂ ≤ 1 of  min over policies j met of  w·(μ_E − M_j),        then M_t of the plan for W_t.
//! ```
//!
//! The dual of this programme is the point of the hull of all M_j nearest to μ_E,
//!
//! ```text
//! min over λ in the simplex of ½‖μ_E − Σ_j λ_j M_j‖²,        W_t = μ_E − Σ_j λ_j M_j up to its length,
//! ```
//!
//! a quadratic programme in as many variables as there are policies, and its solution is the mixed policy. The margin is the
//! distance that is left. Policies are finitely many and a new one cuts the margin, so the method ends, to the precision of
//! the solver, when a plan brings a policy that is known; a step costs a plan and a programme of t variables.

use super::apprenticeship::{Apprentice, States, apprentice};
use crate::error::Result;
use crate::learn::{Problem, Record, Step};
use crate::optim::{dot, least_on_simplex, norm};

/// Settings of the maximum margin.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaxMargin {
    /// How the large MDP is planned in.
    pub states: States,
}

/// How well the programme is solved, relative to the squared length of its longest vector.
const TOLERANCE: f64 = 1e-13;
/// Shares below this are what an interior-point method leaves of zero.
const LEAST_SHARE: f64 = 1e-10;

/// The shares of the point of the hull that is nearest to the expert.
fn nearest_shares(apprentice: &Apprentice) -> Result<Option<Vec<f64>>> {
    let offset = |point: &Vec<f64>| point.iter().zip(&apprentice.expert).map(|(x, expert)| x - expert).collect();
    let offsets: Vec<Vec<f64>> = apprentice.points().iter().map(offset).collect();
    // Scaled, so that the solver's tolerances mean the same for features of any size.
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

fn advance(apprentice: &mut Apprentice, problem: &Problem<'_>, point: Vec<f64>) -> Result<Step> {
    let known = apprentice.find(&point).is_some();
    if !known {
        let length = apprentice.nearest_share(&point);
        let newest = apprentice.keep(point);
        let nearest = nearest_shares(apprentice)?;
        apprentice.mix_in(newest, length);
        // The programme must not fall behind a projection step where it is at the end of its digits.
        let (projected, shares) = (apprentice.distance(), apprentice.shares().to_vec());
        if let Some(nearest) = nearest {
            apprentice.mix(nearest);
            if apprentice.distance() > projected {
                apprentice.mix(shares);
            }
        }
    }
    apprentice.next = apprentice.towards_the_expert();
    let (margin, gap) = (norm(&apprentice.next), apprentice.gap_over_the_ball());
    let (demonstrations, distance) = (problem.len() as u64, Some(margin));
    let finished = known || gap.is_some_and(|gap| apprentice.is_rounding(gap));
    Ok(Step { record: Record { demonstrations, gap, distance, ..Record::default() }, finished })
}

apprentice!(MaxMargin, 100, "gap_only");
