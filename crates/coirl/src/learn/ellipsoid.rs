//! Algorithm 2: the ellipsoid method, for an expert who demonstrates only when the agent does badly.
//!
//! An ellipsoid holds every mapping that may still be the truth W*, ‖W*‖∞ ≤ 1. In each context the agent plans with
//! the centre W_t; where its value is too low the expert shows μ*, and since the agent was optimal for W_t,
//!
//! ```text
//! (W* − W_t)·a > ε,      a = c ⊙ (μ* − μ):
//! ```
//!
//! the half with (W − W_t)·a ≥ 0 is kept, see [`EllipsoidSet`]. The paper's theorem: the agent is worse than ε in at
//! most 2dk(dk + 1)·log(4S√dk/ε) contexts, chosen by whomever, where S bounds ‖c ⊙ μ‖₁ (k/(1 − γ) for features in [0,
//! 1] and contexts on the simplex) and the ball of the start has radius √dk (another start has a larger ball, and its
//! radius in the place of √dk). A context costs a plan and what the expert needs; a cut O((dk)²).

use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::Record;
use crate::demos::Answer;
use crate::error::{Result, check_positive};
use crate::optim::dot;
use crate::optim::{EllipsoidSet, cuts_to_shrink, log_unit_ball};

/// Settings of the ellipsoid method.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ellipsoid {
    /// ε on the value as it stands (the published 1e-3 on the driving value scaled by (1 − γ)/k is 0.03). It is used
    /// for the theorem's count only: what is good enough the expert decides, and should decide by the same number. Defaults to a thousandth
    /// of the largest value there can be.
    pub tolerance: Option<f64>,
}

/// How much of the largest value an agent may miss before an expert objects, by default.
const RELATIVE_TOLERANCE: f64 = 1e-3;

/// ε: what was set, or a thousandth of the largest value there can be.
pub(super) fn expert_tolerance(set: Option<f64>, problem: &Problem<'_>) -> Result<f64> {
    let tolerance = set.map_or_else(|| Ok(RELATIVE_TOLERANCE * problem.sum_bound()?), Ok)?;
    // Where nothing can be gained, nothing can be missed either.
    if set.is_none() && tolerance == 0.0 {
        return Ok(RELATIVE_TOLERANCE);
    }
    check_positive("tolerance", tolerance)?;
    Ok(tolerance)
}

impl Ellipsoid {
    /// The theorem's number of demonstrations, from the start that the settings of the run name.
    pub fn most_demonstrations(&self, problem: &Problem<'_>, initial: Option<&[f64]>) -> Result<f64> {
        self.count(problem, &EllipsoidSet::around_the_box(start(problem, initial))?)
    }

    fn expert_tolerance(&self, problem: &Problem<'_>) -> Result<f64> {
        expert_tolerance(self.tolerance, problem)
    }

    fn count(&self, problem: &Problem<'_>, set: &EllipsoidSet) -> Result<f64> {
        let ratio = 4.0 * problem.sum_bound()? * set.start_radius() / self.expert_tolerance(problem)?;
        Ok(cuts_to_shrink(problem.n_parameters(), ratio))
    }
}

/// W₁: zero by default.
pub(super) fn start(problem: &Problem<'_>, initial: Option<&[f64]>) -> Vec<f64> {
    initial.map_or_else(|| vec![0.0; problem.n_parameters()], <[f64]>::to_vec)
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    set: EllipsoidSet,
    /// Demonstrations that left nothing to cut.
    without_cut: u64,
}

impl Learner for Ellipsoid {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        self.expert_tolerance(problem)?;
        Ok(State { set: EllipsoidSet::around_the_box(start(problem, from.initial))?, without_cut: 0 })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let index = run.context(problem);
        let agent = problem.best_response(state.set.centre(), index)?.feature_expectations;
        let mut batch_loss = None;
        if let Answer::Demonstration(expert) = problem.ask(index, &agent)? {
            let mut normal = vec![0.0; problem.n_parameters()];
            problem.data().add_difference(index, &agent, &expert, -1.0, &mut normal);
            batch_loss = Some(-dot(state.set.centre(), &normal));
            if !state.set.cut(&normal) {
                state.without_cut += 1;
            }
        }
        Ok(Step::from(Record {
            batch_loss,
            demonstrations: state.set.cuts(),
            log_volume: Some(state.set.log_volume()),
            ..Record::default()
        }))
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        state.set.centre().len() == problem.n_parameters()
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        Some(state.set.centre().to_vec())
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    fn guarantee(&self, state: &State, problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        if !problem.has_expert() {
            return Ok((None, Guarantee::none("recorded_expert")));
        }
        let (n, tolerance, set) = (problem.n_parameters(), self.expert_tolerance(problem)?, &state.set);
        let most = self.count(problem, set)?;
        // W* keeps a ball of radius ε/(4S) around a point of the box inside.
        let floor = log_unit_ball(n) + n as f64 * (tolerance / (4.0 * problem.sum_bound()?)).ln();
        let kept = set.cuts() == 0 || (set.cuts() as f64 <= most && set.log_volume() >= floor);
        let guarantee = Guarantee::holds("demonstrations")
            .kept(kept)
            .with("tolerance", tolerance)
            .with("demonstrations", (set.cuts() + state.without_cut) as f64)
            .with("fall", set.start_log_volume() - set.log_volume())
            .with("least_fall", set.least_fall())
            .with_count("without_cut", state.without_cut);
        Ok((Some(most), guarantee))
    }

    fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self> {
        Ok(Self { tolerance: Some(self.expert_tolerance(problem)?) })
    }

    fn has_loss(&self) -> bool {
        true
    }
}
