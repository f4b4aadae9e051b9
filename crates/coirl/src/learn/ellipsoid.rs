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

use super::fit::{Algorithm, Run, Step};
use super::problem::Problem;
use crate::demos::Answer;
use crate::error::{Result, check_positive};
use crate::optim::dot;
use crate::optim::{EllipsoidSet, cuts_to_shrink, log_unit_ball};

/// Settings of the ellipsoid method.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ellipsoid {
    /// ε on the value as it stands (the published 1e-3 on the driving value scaled by (1 − γ)/k is 0.03). It is used
    /// for the theorem's count only: what is good enough the expert decides, and should decide by the same number.
    pub tolerance: f64,
}

impl Default for Ellipsoid {
    fn default() -> Self {
        Self { tolerance: 0.03 }
    }
}

impl Ellipsoid {
    /// The theorem's number of demonstrations, from the start that the settings of the run name.
    pub fn most_demonstrations(&self, problem: &Problem<'_>, initial: Option<&[f64]>) -> Result<f64> {
        check_positive("tolerance", self.tolerance)?;
        let set = EllipsoidSet::around_the_box(start(problem, initial))?;
        self.count(problem, &set)
    }

    fn count(&self, problem: &Problem<'_>, set: &EllipsoidSet) -> Result<f64> {
        let ratio = 4.0 * problem.sum_bound()? * set.start_radius() / self.tolerance;
        Ok(cuts_to_shrink(problem.n_parameters(), ratio))
    }
}

/// W₁: zero where nothing is said.
pub(super) fn start(problem: &Problem<'_>, initial: Option<&[f64]>) -> Vec<f64> {
    initial.map_or_else(|| vec![0.0; problem.n_parameters()], <[f64]>::to_vec)
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    set: EllipsoidSet,
    /// Demonstrations that left nothing to cut.
    without_cut: u64,
}

impl Algorithm for State {
    type Settings = Ellipsoid;

    fn start(own: &Ellipsoid, problem: &Problem<'_>, initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        check_positive("tolerance", own.tolerance)?;
        Ok(Self { set: EllipsoidSet::around_the_box(start(problem, initial))?, without_cut: 0 })
    }

    fn step(&mut self, _own: &Ellipsoid, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let index = run.context(problem);
        let (_, agent) = problem.act(self.set.centre(), index)?;
        let mut batch_loss = None;
        if let Answer::Demonstration(expert) = problem.ask(index, &agent)? {
            let mut normal = vec![0.0; problem.n_parameters()];
            problem.add_difference(index, &agent, &expert, -1.0, &mut normal);
            batch_loss = Some(-dot(self.set.centre(), &normal));
            if !self.set.cut(&normal) {
                self.without_cut += 1;
            }
        }
        Ok(Step {
            batch_loss,
            demonstrations: self.set.cuts(),
            log_volume: Some(self.set.log_volume()),
            ..Step::default()
        })
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        self.set.centre().len() == problem.n_parameters()
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        Some(self.set.centre().to_vec())
    }

    fn default_steps(_own: &Ellipsoid, problem: &Problem<'_>) -> u64 {
        problem.len() as u64
    }

    fn bound(&self, own: &Ellipsoid, problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        if !problem.has_expert() {
            let reason = "the demonstrations were recorded: they come whenever the agent acts differently, not when it \
                          is worse by the tolerance, and no number of them is proved";
            return Ok((None, reason.into()));
        }
        let n = problem.n_parameters();
        let most = own.count(problem, &self.set)?;
        // W* keeps a ball of radius ε/(4S) around a point of the box inside.
        let floor = log_unit_ball(n) + n as f64 * (own.tolerance / (4.0 * problem.sum_bound()?)).ln();
        let kept = self.set.cuts() == 0 || (self.set.cuts() as f64 <= most && self.set.log_volume() >= floor);
        let mut says = format!(
            "at most this many demonstrations, from an expert who is optimal for one mapping with entries in [-1, 1], \
             shows exact feature expectations, and only where the agent is worse by more than {}; there were {}",
            own.tolerance,
            self.set.cuts() + self.without_cut
        );
        let fall = self.set.start_log_volume() - self.set.log_volume();
        says += &format!("; the log-volume fell by {fall:.3}, by the lemma at least {:.3}", self.set.least_fall());
        says += if kept {
            "; the run keeps the bound"
        } else {
            "; the run breaks the bound: this expert is not such a one"
        };
        if self.without_cut > 0 {
            says += &format!("; {} demonstrations left nothing to cut", self.without_cut);
        }
        Ok((Some(most), says))
    }
}
