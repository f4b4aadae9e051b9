//! Apprenticeship learning by Frank–Wolfe steps with away steps (Zahavy, Cohen, Kaplan & Mansour 2020; Guélat & Marcotte 1986).
//!
//! The projection method minimises f(x) = ½‖x − μ_E‖² over the policies' polytope by plain Frank–Wolfe steps, and zigzags where
//! the minimum is on a face. With W = μ_E − x, M of the plan for W and the policy A of the mixture that W likes least:
//!
//! ```text
//! towards:  W·(M − x) ≥ W·(x − A)   x ← x + α(M − x),  α ≤ 1
//! away:     otherwise               x ← x + α(x − A),  α ≤ λ_A/(1 − λ_A), where A is dropped
//! ```
//!
//! with the exact line search α = W·d/‖d‖² along either direction d. f is strongly convex and the polytope has finitely many
//! corners, so f(x) − f* falls by a constant factor at every step that drops nothing, and at most half of the steps do
//! (Lacoste-Julien & Jaggi 2015, Theorem 1): a linear rate. The factor depends on the polytope's pyramidal width, which is not
//! known; the gap is. Only policies with a share are kept, those of equal feature expectations once.

use super::apprenticeship::{Apprentice, States, apprentice};
use crate::error::Result;
use crate::learn::{Problem, Step};

/// Settings of Frank–Wolfe steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrankWolfe {
    /// How the large MDP is planned in.
    pub states: States,
}

fn advance(apprentice: &mut Apprentice, problem: &Problem<'_>, point: Vec<f64>) -> Result<Step> {
    let length = if apprentice.hull.corners().is_empty() {
        let first = apprentice.keep(point);
        apprentice.hull.mix_in(first, 1.0);
        1.0
    } else {
        apprentice.towards_or_away(point)
    };
    apprentice.drop_unused();
    Ok(apprentice.stepped_over_the_ball(problem, length))
}

apprentice!(FrankWolfe, 200, "unknown_rate");
