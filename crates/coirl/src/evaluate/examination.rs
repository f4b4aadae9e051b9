//! Scoring a mapping against a known truth on contexts kept for testing.

use super::{RepeatedPlans, plan_mapping};
use crate::error::{Error, Result};
use crate::json::not_a_number;
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, Context};
use crate::plan::{ManyOptions, Policy, TIE_TOLERANCE, evaluate};
use rayon::prelude::*;
use std::sync::Arc;

/// How an agent does on the test contexts. Ratios are of means over contexts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Score {
    /// Mean of f*(c)·μ of the agent.
    pub value: f64,
    /// `value` as a share of the expert's.
    #[serde(deserialize_with = "not_a_number")]
    pub value_ratio: f64,
    /// (V − V_uniform) / (V* − V_uniform): what is left when acting at random counts as nothing.
    #[serde(deserialize_with = "not_a_number")]
    pub relative_value: f64,
    /// Share of all states in which agent and expert take the same action.
    pub accuracy: f64,
    /// Share of all states in which the agent's action is optimal, ties included.
    pub optimal_accuracy: f64,
    /// Mean of f(c)·(μ − μ*) / ‖W‖: the loss of the mapping itself; nothing for W = 0.
    pub held_out_loss: Option<f64>,
}

/// The expert's side of an examination, computed once.
pub struct Examination<'a> {
    model: &'a Cmdp,
    plans: RepeatedPlans<'a>,
    contexts: Vec<Context>,
    weights: Vec<f64>,
    policies: Vec<Policy>,
    feature_expectations: Vec<Vec<f64>>,
    /// Per context: whether each pair is optimal.
    optimal: Vec<Vec<bool>>,
    expert_value: f64,
    uniform_value: f64,
}

impl<'a> Examination<'a> {
    /// Plans as the expert would, for every test context. For the criteria with stationary policies.
    pub fn new(model: &'a Cmdp, truth: &LinearMapping, contexts: Vec<Context>) -> Result<Self> {
        if contexts.is_empty() {
            return Err(Error::shape("test contexts", "at least 1", 0));
        }
        let weights = truth.weights_of_all(&contexts)?;
        let options = ManyOptions { feature_expectations: true, values: true };
        let mut plans = plan_mapping(model, truth, &contexts, options)?;
        let k = model.n_features();
        let uniform = Policy::uniform(model.pairs());
        let details: Vec<(Vec<bool>, f64)> = plans
            .par_iter()
            .enumerate()
            .map(|(i, plan)| {
                let mdp = model.mdp(&contexts[i])?;
                let w = &weights[i * k..(i + 1) * k];
                let reward = mdp.reward(w)?;
                let q = evaluate::q_values(&mdp, &reward, plan.values.as_deref().unwrap_or_default())?;
                let slack = TIE_TOLERANCE * q.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                let mut optimal = vec![false; q.len()];
                for s in 0..mdp.n_states() {
                    let pairs = mdp.pairs().of_state(s);
                    let best = q[pairs.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    pairs.for_each(|pair| optimal[pair] = q[pair] >= best - slack);
                }
                Ok((optimal, evaluate::value(&mdp, &reward, &uniform)?))
            })
            .collect::<Result<_>>()?;
        let n = contexts.len() as f64;
        let expectations: Vec<Vec<f64>> =
            plans.iter_mut().map(|plan| plan.feature_expectations.take().unwrap_or_default()).collect();
        Ok(Self {
            model,
            plans: RepeatedPlans::new(model),
            expert_value: mean_value(&weights, &expectations),
            uniform_value: details.iter().map(|detail| detail.1).sum::<f64>() / n,
            feature_expectations: expectations,
            policies: plans.into_iter().map(|plan| plan.policy).collect(),
            optimal: details.into_iter().map(|detail| detail.0).collect(),
            weights,
            contexts,
        })
    }

    /// Mean value of the expert.
    pub fn expert_value(&self) -> f64 {
        self.expert_value
    }

    /// Number of test contexts.
    pub fn n_contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Plans with the mapping in every test context and compares.
    pub fn score(&self, mapping: &LinearMapping) -> Result<Score> {
        let own = mapping.weights_of_all(&self.contexts)?;
        let plans = self.plans.plan(&self.contexts, &own)?;
        let pairs = self.model.pairs();
        let marks =
            |(i, (policy, _)): (usize, &(Policy, Arc<[f64]>))| match (policy.actions(), self.policies[i].actions()) {
                (Some(actions), Some(expert)) => {
                    actions.iter().enumerate().fold((0, 0), |(same, good), (s, action)| {
                        let optimal = pairs.find(s, action.index()).is_some_and(|pair| self.optimal[i][pair]);
                        (same + usize::from(*action == expert[s]), good + usize::from(optimal))
                    })
                }
                _ => (0, 0),
            };
        let (same, good) = plans.par_iter().enumerate().map(marks).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let agent: Vec<Vec<f64>> = plans.iter().map(|(_, mu)| mu.to_vec()).collect();
        let value = mean_value(&self.weights, &agent);
        let size = mapping.values().iter().map(|w| w * w).sum::<f64>().sqrt();
        let loss = mean_value(&own, &agent) - mean_value(&own, &self.feature_expectations);
        let decisions = (self.contexts.len() * pairs.n_states()) as f64;
        Ok(Score {
            value,
            value_ratio: value / self.expert_value,
            relative_value: (value - self.uniform_value) / (self.expert_value - self.uniform_value),
            accuracy: same as f64 / decisions,
            optimal_accuracy: good as f64 / decisions,
            held_out_loss: (size > 0.0).then(|| loss / size),
        })
    }
}

/// Mean of w_i·μ_i.
fn mean_value(weights: &[f64], expectations: &[Vec<f64>]) -> f64 {
    let k = weights.len() / expectations.len();
    let dot = |(w, mu): (&[f64], &Vec<f64>)| w.iter().zip(mu).map(|(x, y)| x * y).sum::<f64>();
    weights.chunks_exact(k).zip(expectations).map(dot).sum::<f64>() / expectations.len() as f64
}
