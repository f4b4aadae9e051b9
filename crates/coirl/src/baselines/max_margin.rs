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
use crate::optim::norm;

/// Settings of the maximum margin.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaxMargin {
    /// How the large MDP is planned in.
    pub states: States,
}

fn advance(apprentice: &mut Apprentice, problem: &Problem<'_>, point: Vec<f64>) -> Result<Step> {
    let known = apprentice.hull.find(&point, apprentice.rounding()).is_some();
    if !known {
        let length = apprentice.hull.nearest_share(&point);
        let newest = apprentice.keep(point);
        let nearest = apprentice.hull.nearest_shares()?;
        apprentice.hull.mix_in(newest, length);
        // The programme must not fall behind a projection step where it is at the end of its digits.
        let (projected, shares) = (apprentice.hull.distance(), apprentice.hull.shares().to_vec());
        if let Some(nearest) = nearest {
            apprentice.hull.mix(nearest);
            if apprentice.hull.distance() > projected {
                apprentice.hull.mix(shares);
            }
        }
    }
    apprentice.next = apprentice.hull.towards_target();
    let (margin, gap) = (norm(&apprentice.next), apprentice.gap_over_the_ball());
    let (demonstrations, distance) = (problem.len() as u64, Some(margin));
    let finished = known || gap.is_some_and(|gap| apprentice.is_rounding(gap));
    Ok(Step { record: Record { demonstrations, gap, distance, ..Record::default() }, finished })
}

apprentice!(MaxMargin, 100, "gap_only");
