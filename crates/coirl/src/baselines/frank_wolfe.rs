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
use crate::optim::dot;

/// Settings of Frank–Wolfe steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrankWolfe {
    /// How the large MDP is planned in.
    pub states: States,
}

/// Towards a new policy, or away from the worst of the mixture; the length of the step.
fn towards_or_away(apprentice: &mut Apprentice, point: Vec<f64>) -> f64 {
    let reward = apprentice.towards_the_expert();
    let value = |policy: &[f64]| dot(&reward, policy);
    let values: Vec<f64> = apprentice.points().iter().map(|own| value(own)).collect();
    let worst = (1..values.len()).fold(0, |worst, j| if values[j] < values[worst] { j } else { worst });
    let share = apprentice.shares()[worst];
    let mixed = value(&apprentice.mean);
    if value(&point) - mixed >= mixed - values[worst] || share >= 1.0 {
        let length = apprentice.nearest_share(&point);
        let at = apprentice.find(&point).unwrap_or_else(|| apprentice.keep(point));
        apprentice.mix_in(at, length);
        return length;
    }
    let away: Vec<f64> =
        apprentice.mean.iter().zip(&apprentice.points()[worst]).map(|(own, worst)| own - worst).collect();
    let (wanted, most) = (apprentice.line_search(&away), share / (1.0 - share));
    let length = wanted.min(most);
    let mut shares: Vec<f64> = apprentice.shares().iter().map(|share| (1.0 + length) * share).collect();
    // A dropped policy has no share, not one of rounding size.
    shares[worst] = if wanted >= most { 0.0 } else { (shares[worst] - length).max(0.0) };
    let total: f64 = shares.iter().sum();
    apprentice.mix(shares.iter().map(|share| share / total).collect());
    length
}

fn advance(apprentice: &mut Apprentice, problem: &Problem<'_>, point: Vec<f64>) -> Result<Step> {
    let length = if apprentice.len() == 0 {
        let first = apprentice.keep(point);
        apprentice.mix_in(first, 1.0);
        1.0
    } else {
        towards_or_away(apprentice, point)
    };
    apprentice.drop_unused();
    Ok(apprentice.stepped_over_the_ball(problem, length))
}

apprentice!(FrankWolfe, 200, "unknown_rate");
