//! Maximum-entropy inverse reinforcement learning, causal and discounted (Ziebart, Bagnell and Dey 2010), with f_W(c) = cᵀW.
//!
//! Among all policies with the demonstrated feature expectations, the one of largest causal entropy is the soft policy of some
//! weights. Its dual over all demonstrations,
//!
//! ```text
//! D(W) = mean over demonstrations of  V^soft_c(W) − f_W(c)·μ*_c  +  λ/2 ‖W‖²,    ∇D = mean of  c ⊙ (μ^soft_c − μ*_c)  +  λW,
//! ```
//!
//! is smooth and convex, and is minimised by L-BFGS. For exact demonstrations V^soft − f·μ* is −τ times the expected discounted
//! log-likelihood of the expert's actions; for sampled ones the dual stays convex, which the likelihood of an action in a random
//! process is not. The temperature only sets the unit of W. A deterministic expert is the limit of ever larger W: the penalty
//! keeps W finite. Cost of a step: one soft plan and one occupancy per demonstration.

use crate::agent::{Agent, SoftMapping};
use crate::demos::DemonstratedActions;
use crate::error::{Error, Result, check_positive};
use crate::learn::{Guarantee, Learner, Problem, Record, Run, Start, Step};
use crate::optim::{Evaluation, Lbfgs};
use crate::optim::{dot, norm_inf};
use crate::plan::{SoftPlanner, evaluate};
use rayon::prelude::*;

/// Iterations by default.
const STEPS: u64 = 200;

/// Settings of maximum-entropy inverse reinforcement learning.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaximumEntropy {
    /// τ.
    pub temperature: f64,
    /// λ.
    pub penalty: f64,
    /// Plan for the learned reward instead of following its soft policy.
    pub greedy: bool,
    /// Stop where no entry of the gradient is larger than this share of the largest that c ⊙ μ can have.
    pub gradient_tolerance: f64,
}

impl Default for MaximumEntropy {
    fn default() -> Self {
        Self { temperature: 1.0, penalty: 1e-4, greedy: false, gradient_tolerance: 1e-5 }
    }
}

impl MaximumEntropy {
    pub(super) fn check(&self) -> Result<()> {
        check_positive("temperature", self.temperature)?;
        check_positive("gradient_tolerance", self.gradient_tolerance)?;
        check_penalty(self.penalty)
    }

    /// τ, for agents that follow the soft policy.
    pub(super) fn acting_temperature(&self) -> Option<f64> {
        (!self.greedy).then_some(self.temperature)
    }
}

/// Refuses penalties below zero.
pub(super) fn check_penalty(penalty: f64) -> Result<()> {
    if penalty >= 0.0 && penalty.is_finite() {
        return Ok(());
    }
    let reason = "expected a number that is not negative";
    Err(Error::InvalidSetting { name: "penalty", value: penalty.to_string(), reason })
}

/// The term of one demonstration, with how well the soft policy explains its actions.
pub(super) struct Term {
    /// V^soft − w·μ*.
    pub(super) value: f64,
    /// μ^soft.
    pub(super) feature_expectations: Vec<f64>,
    pub(super) fit: ActionFit,
}

/// Sums over demonstrated actions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ActionFit {
    /// Σ log π(a | s).
    pub(super) log_likelihood: f64,
    /// Σ π(a | s).
    pub(super) agreement: f64,
}

impl ActionFit {
    pub(super) fn add(&mut self, other: Self) {
        self.log_likelihood += other.log_likelihood;
        self.agreement += other.agreement;
    }
}

/// The dual's term of a demonstration for weights of its context.
pub(super) fn term(
    problem: &Problem<'_>,
    actions: &DemonstratedActions,
    index: usize,
    weights: &[f64],
    temperature: f64,
) -> Result<Term> {
    let (model, own) = (problem.model(), problem.planner().planned_model()?);
    let mdp = problem.data().origin(index).of(own.mdp(problem.context(index))?)?;
    let plan = SoftPlanner::at(temperature).plan(&mdp, &mdp.reward(weights)?)?;
    problem.planner().count_plans(1);
    let log_probabilities = plan.log_probabilities(0).unwrap_or_default();
    // What is not known has no probability, and says nothing.
    let log_of = |pair: usize| {
        let (state, action) = (model.pairs().state(pair).index(), model.pairs().action(pair).index());
        own.pairs().find(state, action).map(|pair| log_probabilities[pair])
    };
    Ok(Term {
        value: plan.value - dot(weights, problem.data().expectations(index)?),
        feature_expectations: evaluate::feature_expectations(&mdp, &plan.policy)?,
        fit: ActionFit {
            log_likelihood: actions.sum(index, |pair| log_of(pair).unwrap_or(0.0)),
            agreement: actions.sum(index, |pair| log_of(pair).map_or(0.0, f64::exp)),
        },
    })
}

/// D and ∇D at W.
fn dual(
    problem: &Problem<'_>,
    actions: &DemonstratedActions,
    own: &MaximumEntropy,
    mapping: &[f64],
) -> Result<Evaluation<ActionFit>> {
    let linear = problem.linear(mapping)?;
    let one = |i: usize| term(problem, actions, i, &linear.weights(problem.data().input(i))?, own.temperature);
    let terms: Vec<Term> = (0..problem.len()).into_par_iter().map(one).collect::<Result<_>>()?;
    let share = 1.0 / problem.len() as f64;
    let mut value = 0.5 * own.penalty * dot(mapping, mapping);
    let mut gradient: Vec<f64> = mapping.iter().map(|w| own.penalty * w).collect();
    let mut remark = ActionFit::default();
    for (i, term) in terms.iter().enumerate() {
        value += share * term.value;
        problem.data().add_difference(
            i,
            &term.feature_expectations,
            problem.data().expectations(i)?,
            share,
            &mut gradient,
        );
        remark.add(term.fit);
    }
    Ok(Evaluation { value, gradient, remark })
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    settings: MaximumEntropy,
    optimiser: Lbfgs,
    /// The gradient at which it is done.
    goal: f64,
}

impl Learner for MaximumEntropy {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        self.check()?;
        let start = from.initial.map_or_else(|| vec![0.0; problem.n_parameters()], <[f64]>::to_vec);
        let at = dual(problem, problem.data().actions(), self, &start)?;
        let goal = self.gradient_tolerance * problem.entry_bound()?;
        Ok(State { settings: *self, optimiser: Lbfgs::new(start, at), goal })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let actions = problem.data().actions();
        let accepted = state.optimiser.step(|mapping| dual(problem, actions, self, mapping))?;
        let finished = accepted.is_none() || norm_inf(&state.optimiser.gradient) <= state.goal;
        Ok(Step {
            record: Record {
                batch_loss: Some(state.optimiser.value),
                demonstrations: problem.len() as u64,
                log_likelihood: accepted.as_ref().and_then(|step| actions.mean(step.remark.log_likelihood)),
                training_accuracy: accepted.as_ref().and_then(|step| actions.mean(step.remark.agreement)),
                step_size: accepted.map(|step| step.length),
                ..Record::default()
            },
            finished,
        })
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        state.optimiser.fits(problem.n_parameters())
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        Some(state.optimiser.point.clone())
    }

    fn agent(&self, state: &State, problem: &Problem<'_>) -> Result<Agent> {
        let values = state.optimiser.point.clone();
        let mapping = problem.linear(&values)?;
        match state.settings.acting_temperature() {
            Some(temperature) => Ok(Agent::Soft(SoftMapping::new(mapping, temperature)?)),
            None => Ok(Agent::Planned(mapping)),
        }
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(STEPS)
    }

    fn guarantee(&self, state: &State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let gradient = &state.optimiser.gradient;
        // A function that curves by λ at least is within ‖g‖²/(2λ) of its least value.
        let gap = dot(gradient, gradient) / (2.0 * self.penalty);
        let guarantee = match self.penalty > 0.0 {
            true if gap.is_finite() => Guarantee::holds("dual").with("dual_gap", gap),
            true => Guarantee::none("overflowed"),
            false => Guarantee::none("matched").with("steepest", norm_inf(gradient)),
        };
        Ok((None, guarantee))
    }

    fn has_loss(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::demos::{Demonstration, Estimator, Train};
    use crate::domains::Garnet;

    /// For demonstrations that no reward explains: the gradient is one wherever W is.
    #[test]
    fn the_gradient_is_that_of_the_dual() {
        let model = Garnet { n_states: 12, n_features: 2, n_kernels: 3, ..Garnet::default() }.build().unwrap();
        let contexts = model.context_space().sample(4, 1).unwrap();
        let shown = contexts.into_iter().enumerate().map(|(i, context)| {
            let mu = vec![i as f64, 3.0 - i as f64];
            Demonstration::from_feature_expectations(&model, context, mu).unwrap()
        });
        let problem = Problem::new(&model, &Train::new(shown.collect()), &Estimator::default()).unwrap();
        let actions = problem.data().actions();
        let own = MaximumEntropy { temperature: 0.7, penalty: 0.3, ..MaximumEntropy::default() };
        let point = [0.4, -0.9, 1.3, 0.2, -0.6, 0.8];
        let at = dual(&problem, actions, &own, &point).unwrap();
        for (i, slope) in at.gradient.iter().enumerate() {
            let value = |shift: f64| {
                let mut point = point;
                point[i] += shift;
                dual(&problem, actions, &own, &point).unwrap().value
            };
            let found = (value(1e-4) - value(-1e-4)) / 2e-4;
            assert!((found - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{i}: {found} and {slope}");
        }
    }
}
