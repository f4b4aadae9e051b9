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

use super::apprenticeship::{Apprentice, States};
use crate::agent::Agent;
use crate::error::Result;
use crate::learn::{Algorithm, GameValue, Problem, Run, Step};

/// Settings of projection.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Projection {
    /// How the large MDP is planned in.
    pub states: States,
}

/// What projection keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct State(Apprentice);

impl Algorithm for State {
    type Settings = Projection;

    fn start(_own: &Projection, problem: &Problem<'_>, initial: Option<&[f64]>, seed: u64) -> Result<Self> {
        Apprentice::start_anywhere(problem, initial, seed).map(Self)
    }

    fn step(&mut self, own: &Projection, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let apprentice = &mut self.0;
        let point = apprentice.respond(problem, own.states)?;
        apprentice.bound_over_the_ball(&point);
        let length = apprentice.nearest_share(&point);
        let newest = apprentice.keep(point);
        apprentice.mix_in(newest, length);
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

    fn default_steps(_own: &Projection, _problem: &Problem<'_>) -> u64 {
        100
    }

    fn game(&self, _own: &Projection) -> Option<GameValue> {
        self.0.game_over_the_ball()
    }

    fn bound(&self, _own: &Projection, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        Ok((None, "no bound in advance: the gap is what is known of this run".into()))
    }
}
