//! Estimators of feature expectations from trajectories.
//!
//! | estimator | μ̂ from s₀ a₀ s₁ … s_T | bias | variance |
//! |---|---|---|---|
//! | truncated | Σ_{t ≤ T} γᵗ φ(s_t) | at most γ^{T+1} φ_max / (1 − γ) | of the path |
//! | geometric | Σ_{t ≤ T} φ(s_t), the path ended with probability 1 − γ at each state | none | larger: undiscounted |
//! | control variate | ψ(s₀) + Σ_{t < T} γᵗ (φ(s_t) + γ E[ψ(s′) \| s_t, a_t] − ψ(s_t)) | γᵀ (μ − ψ)(s_T) | of the decisions only |
//! | decisions | Σ_{t < T} γᵗ φ(s_t), against an agent from Σ_{t < T} γᵗ (e(s_t) − γ P(· \| s_t, a_t)) | γᵀ (V^π − V)(s_T) in the loss | of the decisions that differ from the agent's |
//!
//! The control variate knows the dynamics. ψ are the successor features of a reference policy; by the performance difference
//! lemma its expectation is μ for every reference, the noise of the transitions themselves is integrated out, and with
//! the expert's own policy as reference nothing is left but the start. A path that ends in an absorbing state has an
//! exact tail: there ψ = μ. Features of states and actions have one term per action instead of one per state.
//!
//! *Decisions* is the control variate whose reference is the agent itself, at every step anew: the loss of one demonstration
//! becomes Σ γᵗ (V^π(s_t) − Q^π(s_t, a_t)), what each demonstrated action costs in the agent's own eyes. Its expectation is the
//! loss of the paper whatever the expert does, it is never negative, and it is zero where the agent agrees with every action: the
//! noise vanishes as the agent improves. It is the same price as a start of its own, but a sample of it is not convex in W.

use super::{Demonstration, Evidence, Trajectory};
use crate::error::{Error, Result};
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, Criterion, Dynamics, Features, Mdp, StateId};
use crate::plan::{Planner, evaluate};
use std::sync::Arc;

/// How feature expectations are read off trajectories.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Estimator {
    /// The discounted sum along the path, at most `horizon` transitions of it.
    Truncated {
        /// Transitions to use; all of them by default.
        horizon: Option<usize>,
    },
    /// The plain sum along a path that was ended with probability 1 − γ at each state.
    Geometric,
    /// With the successor features of a reference policy as control variate.
    #[default]
    ControlVariate,
    /// Decision by decision, with the agent itself as reference.
    Decisions,
}

/// H = ⌈log(1/ε_H) / (1 − γ)⌉, after which γᴴ ≤ ε_H.
pub fn truncation_horizon(discount: f64, tail: f64) -> Result<usize> {
    if !(0.0..1.0).contains(&discount) {
        return Err(Error::InvalidDiscount { value: discount });
    }
    if !(tail > 0.0 && tail < 1.0) {
        let reason = "expected a number between 0 and 1";
        return Err(Error::InvalidSetting { name: "tail", value: tail.to_string(), reason });
    }
    Ok(((1.0 / tail).ln() / (1.0 - discount)).ceil() as usize)
}

/// The policy whose successor features serve as control variate.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Reference {
    /// Every known action equally likely.
    #[default]
    Uniform,
    /// What an agent with this mapping would do in each context.
    Agent(LinearMapping),
}

/// Estimated feature expectations of one demonstration.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// μ̂, averaged over the trajectories.
    pub feature_expectations: Vec<f64>,
    /// A bound on the bias of every entry.
    pub bias_bound: f64,
    /// The standard error of every entry, where there is more than one trajectory; zeros where nothing was sampled.
    pub standard_error: Option<Vec<f64>>,
    /// Where the agent that is compared with it starts, a weight per state that may be negative; nothing where that is the
    /// demonstration's own start.
    pub signed_start: Option<Vec<f64>>,
}

/// Estimates feature expectations; keeps the successor features of shared dynamics.
pub struct Estimates<'a> {
    model: &'a Cmdp,
    estimator: Estimator,
    reference: Reference,
    /// ψ of the uniform policy, where one kernel serves all contexts.
    shared: Option<Arc<Vec<f64>>>,
}

impl<'a> Estimates<'a> {
    /// Prepares an estimator. Trajectories need a discounted or total-reward criterion.
    pub fn new(model: &'a Cmdp, estimator: Estimator, reference: Reference) -> Result<Self> {
        let mut estimates = Self { model, estimator, reference, shared: None };
        let needs_shared =
            estimates.estimator == Estimator::ControlVariate && estimates.reference == Reference::Uniform;
        if let (true, Dynamics::Shared(_), Criterion::Discounted { .. } | Criterion::TotalReward) =
            (needs_shared, model.dynamics(), model.criterion())
        {
            let mdp = model.shared_mdp()?;
            estimates.shared = Some(Arc::new(evaluate::successor_features(&mdp, &model.random_policy())?));
        }
        Ok(estimates)
    }

    /// μ̂ of a demonstration; given feature expectations are taken as they are.
    pub fn estimate(&self, demonstration: &Demonstration) -> Result<Estimate> {
        let trajectories = match demonstration.evidence() {
            Evidence::FeatureExpectations(mu) => {
                let standard_error = Some(vec![0.0; mu.len()]);
                return Ok(Estimate {
                    feature_expectations: mu.clone(),
                    bias_bound: 0.0,
                    standard_error,
                    signed_start: None,
                });
            }
            Evidence::Trajectories(trajectories) => trajectories,
        };
        let (Criterion::Discounted { .. } | Criterion::TotalReward) = self.model.criterion() else {
            return Err(Error::CriterionMismatch {
                operation: "estimating feature expectations from trajectories",
                criterion: self.model.criterion().name(),
                hint: "give feature expectations instead",
            });
        };
        let mdp = self.model.mdp(demonstration.context())?;
        let psi = match self.estimator {
            Estimator::ControlVariate => Some(self.successor_features(demonstration, &mdp)?),
            Estimator::Truncated { .. } | Estimator::Geometric | Estimator::Decisions => None,
        };
        let each: Vec<(Vec<f64>, f64)> = trajectories
            .iter()
            .map(|trajectory| match (&self.estimator, &psi) {
                (Estimator::ControlVariate, Some(psi)) => control_variate(&mdp, trajectory, psi),
                (Estimator::Geometric, _) => geometric(&mdp, trajectory),
                (Estimator::Truncated { horizon }, _) => truncated(&mdp, trajectory, *horizon),
                (Estimator::Decisions, _) => decisions(&mdp, trajectory),
                (Estimator::ControlVariate, None) => Err(Error::ContextNeeded),
            })
            .collect::<Result<_>>()?;
        let mut estimate = pooled(&each);
        if self.estimator == Estimator::Decisions {
            let mut start = vec![0.0; mdp.n_states()];
            let share = 1.0 / trajectories.len() as f64;
            trajectories.iter().try_for_each(|trajectory| add_decisions(&mdp, trajectory, share, &mut start))?;
            estimate.signed_start = Some(start);
        }
        Ok(estimate)
    }

    fn successor_features(&self, demonstration: &Demonstration, mdp: &Mdp<'_>) -> Result<Arc<Vec<f64>>> {
        if let Some(psi) = &self.shared {
            return Ok(psi.clone());
        }
        let policy = match &self.reference {
            Reference::Uniform => self.model.random_policy(),
            Reference::Agent(mapping) => {
                let weights = mapping.weights(demonstration.context())?;
                Planner::default().plan(mdp, &mdp.reward(&weights)?)?.policy
            }
        };
        Ok(Arc::new(evaluate::successor_features(mdp, &policy)?))
    }
}

/// The mean over trajectories, its standard error and the mean of the bias bounds.
fn pooled(each: &[(Vec<f64>, f64)]) -> Estimate {
    let (n, k) = (each.len() as f64, each[0].0.len());
    let mean = |j: usize| each.iter().map(|(mu, _)| mu[j]).sum::<f64>() / n;
    let feature_expectations: Vec<f64> = (0..k).map(mean).collect();
    let error = |j: usize| {
        let squares: f64 = each.iter().map(|(mu, _)| (mu[j] - feature_expectations[j]).powi(2)).sum();
        (squares / (n * (n - 1.0))).sqrt()
    };
    let standard_error = (each.len() > 1).then(|| (0..k).map(error).collect());
    let bias_bound = each.iter().map(|(_, bias)| bias).sum::<f64>() / n;
    Estimate { feature_expectations, bias_bound, standard_error, signed_start: None }
}

/// Whether nothing but this state's own features can follow it.
fn ends(mdp: &Mdp<'_>, state: StateId) -> bool {
    let pairs = mdp.pairs().of_state(state.index());
    let decided = pairs.len() == 1 || matches!(mdp.features(), Features::State { .. });
    decided && mdp.is_absorbing(state)
}

/// Σ γᵗ φ(s_t) over at most `horizon` transitions, and what may be missing.
fn truncated(mdp: &Mdp<'_>, trajectory: &Trajectory, horizon: Option<usize>) -> Result<(Vec<f64>, f64)> {
    let gamma = mdp.criterion().discount();
    let path = trajectory.truncated(horizon.unwrap_or(usize::MAX));
    let n_terms = path.actions.len() + usize::from(matches!(mdp.features(), Features::State { .. }));
    let sum = path.discounted_features(mdp, gamma)?;
    let missing = if gamma < 1.0 {
        gamma.powi(n_terms as i32) / (1.0 - gamma) * mdp.features().max_abs()
    } else if ends(mdp, path.states[path.actions.len()]) {
        0.0
    } else {
        f64::INFINITY
    };
    Ok((sum, missing))
}

/// Σ φ(s_t): discounting is in the random length. At discount one no path is ended at random, and what an unfinished one lacks
/// is lacking.
fn geometric(mdp: &Mdp<'_>, trajectory: &Trajectory) -> Result<(Vec<f64>, f64)> {
    if mdp.criterion().discount() == 1.0 {
        return truncated(mdp, trajectory, None);
    }
    Ok((trajectory.discounted_features(mdp, 1.0)?, 0.0))
}

/// ψ(s₀) + Σ γᵗ (φ + γ E[ψ(s′)] − ψ(s_t)), and what the reference may be off at the end.
fn control_variate(mdp: &Mdp<'_>, trajectory: &Trajectory, psi: &[f64]) -> Result<(Vec<f64>, f64)> {
    let (gamma, k) = (mdp.criterion().discount(), mdp.features().n_features());
    let row = |state: usize| &psi[state * k..(state + 1) * k];
    let mut sum = row(trajectory.states[0].index()).to_vec();
    let mut scale = 1.0;
    for t in 0..trajectory.actions.len() {
        let state = trajectory.states[t].index();
        let pair = trajectory.pair(mdp.pairs(), t)?;
        mdp.features().add_scaled(state, pair, scale, &mut sum);
        sum.iter_mut().zip(row(state)).for_each(|(x, p)| *x -= scale * p);
        for (next, p) in mdp.kernel().successors(pair) {
            // At discount one an absorbing state keeps its zero tail by itself.
            sum.iter_mut().zip(row(next)).for_each(|(x, y)| *x += scale * gamma * p * y);
        }
        scale *= gamma;
    }
    Ok((sum, end_bias(mdp, trajectory, scale)))
}

/// How far two policies' feature expectations may be apart after a path whose next state would count `scale`.
fn end_bias(mdp: &Mdp<'_>, trajectory: &Trajectory, scale: f64) -> f64 {
    let gamma = mdp.criterion().discount();
    if ends(mdp, trajectory.states[trajectory.actions.len()]) {
        0.0
    } else if gamma < 1.0 {
        2.0 * scale / (1.0 - gamma) * mdp.features().max_abs()
    } else {
        f64::INFINITY
    }
}

/// Σ_{t < T} γᵗ φ(s_t), to be compared with an agent from where [`add_decisions`] says.
fn decisions(mdp: &Mdp<'_>, trajectory: &Trajectory) -> Result<(Vec<f64>, f64)> {
    let gamma = mdp.criterion().discount();
    let mut sum = vec![0.0; mdp.features().n_features()];
    let mut scale = 1.0;
    for t in 0..trajectory.actions.len() {
        let pair = trajectory.pair(mdp.pairs(), t)?;
        mdp.features().add_scaled(trajectory.states[t].index(), pair, scale, &mut sum);
        scale *= gamma;
    }
    Ok((sum, end_bias(mdp, trajectory, scale)))
}

/// Adds `share` · Σ_{t < T} γᵗ (e(s_t) − γ P(· | s_t, a_t)).
fn add_decisions(mdp: &Mdp<'_>, trajectory: &Trajectory, share: f64, start: &mut [f64]) -> Result<()> {
    let gamma = mdp.criterion().discount();
    let mut scale = share;
    for t in 0..trajectory.actions.len() {
        let pair = trajectory.pair(mdp.pairs(), t)?;
        start[trajectory.states[t].index()] += scale;
        scale *= gamma;
        mdp.kernel().successors(pair).for_each(|(next, p)| start[next] -= scale * p);
    }
    Ok(())
}
