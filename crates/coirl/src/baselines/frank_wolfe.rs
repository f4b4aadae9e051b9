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

use super::apprenticeship::{Apprentice, States};
use crate::agent::Agent;
use crate::error::Result;
use crate::learn::{Algorithm, GameValue, Problem, Run, Step};
use crate::optim::dot;

/// Settings of Frank–Wolfe steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrankWolfe {
    /// How the large MDP is planned in.
    pub states: States,
}

/// What Frank–Wolfe steps keep.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct State(Apprentice);

/// Towards a new policy, or away from the worst of the mixture; the length of the step.
fn advance(apprentice: &mut Apprentice, point: Vec<f64>) -> f64 {
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

impl Algorithm for State {
    type Settings = FrankWolfe;

    fn start(_own: &FrankWolfe, problem: &Problem<'_>, initial: Option<&[f64]>, seed: u64) -> Result<Self> {
        Apprentice::start_anywhere(problem, initial, seed).map(Self)
    }

    fn step(&mut self, own: &FrankWolfe, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let apprentice = &mut self.0;
        let point = apprentice.respond(problem, own.states)?;
        apprentice.bound_over_the_ball(&point);
        let length = if apprentice.len() == 0 {
            let first = apprentice.keep(point);
            apprentice.mix_in(first, 1.0);
            1.0
        } else {
            advance(apprentice, point)
        };
        apprentice.drop_unused();
        Ok(apprentice.stepped_over_the_ball(problem, length))
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        self.0.fits(problem)
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        None
    }

    fn agent(&self, problem: &Problem<'_>) -> Result<Agent> {
        self.0.agent(problem)
    }

    fn default_steps(_own: &FrankWolfe, _problem: &Problem<'_>) -> u64 {
        200
    }

    fn game(&self, _own: &FrankWolfe) -> Option<GameValue> {
        self.0.game_over_the_ball()
    }

    fn bound(&self, _own: &FrankWolfe, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        let says = "a linear rate whose factor depends on the width of the policies' polytope, which is not known; \
                    the gap is what is known of this run";
        Ok((None, says.into()))
    }
}
