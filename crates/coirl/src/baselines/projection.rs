//! Apprenticeship learning by projection (Abbeel & Ng 2004, section 3.1).
//!
//! ```text
//! W_t = μ_E − μ̄_{t−1},   M_t of the plan for W_t,   μ̄_t = μ̄_{t−1} + α(M_t − μ̄_{t−1}),   α = (M_t − μ̄)·(μ_E − μ̄)/‖M_t − μ̄‖².
//! ```
//!
//! μ̄_t is the point nearest to μ_E on the segment to the new policy: a Frank–Wolfe step with exact line search on
//! ½‖μ̄ − μ_E‖². α is at most one wherever the expert can be matched, and cut there otherwise, so that μ̄ stays a mixture. The
//! distance never grows and falls as O(1/√t), no faster where μ_E is on the boundary of the policies' polytope: the steps
//! then zigzag between the ends of a face. Every policy keeps a share. The first W is random.

use super::apprenticeship::{Apprentice, States, apprentice};
use crate::error::Result;
use crate::learn::{Problem, Step};

/// Settings of projection.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Projection {
    /// How the large MDP is planned in.
    pub states: States,
}

fn advance(apprentice: &mut Apprentice, problem: &Problem<'_>, point: Vec<f64>) -> Result<Step> {
    let length = apprentice.hull.nearest_share(&point);
    let newest = apprentice.keep(point);
    apprentice.hull.mix_in(newest, length);
    Ok(apprentice.stepped_over_the_ball(problem, length))
}

apprentice!(Projection, 100, "gap_only");
