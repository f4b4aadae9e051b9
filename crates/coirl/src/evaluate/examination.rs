//! Scoring an agent against a known truth on contexts kept for testing.

use super::behaviour::behaviours;
use super::{Behaviour, RepeatedPlans, plan_mapping};
use crate::agent::Agent;
use crate::error::{Error, Result};
use crate::json::not_a_number;
use crate::mapping::{LinearMapping, RewardMapping};
use crate::model::{Cmdp, Context};
use crate::plan::{ManyOptions, Policy, TIE_TOLERANCE, evaluate};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::RwLock;

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
    /// Share of all states in which agent and expert take the same action; not a number for policies that change with time.
    #[serde(deserialize_with = "not_a_number")]
    pub accuracy: f64,
    /// Share of all states in which the agent's action is optimal, ties included.
    #[serde(deserialize_with = "not_a_number")]
    pub optimal_accuracy: f64,
    /// Mean of f(c)·(μ − μ*) / ‖W‖: the loss of the mapping itself; nothing for W = 0.
    pub held_out_loss: Option<f64>,
}

/// Mappings of mixed agents whose marks are kept.
const MOST_MARKS: usize = 100_000;

/// What an agent came to in all test contexts: its mean value, and the states with the expert's action or one as good. Of a mixed
/// agent they are the means over what it may draw.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    value: f64,
    same: f64,
    good: f64,
}

/// The expert's side of an examination, computed once.
pub struct Examination<'a> {
    model: &'a Cmdp,
    plans: RepeatedPlans<'a>,
    /// A mixed agent is examined again and again while it grows: the marks of what it may draw, by the bits of the mapping.
    drawn: RwLock<HashMap<Vec<u64>, Marks>>,
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
    pub fn new(model: &'a Cmdp, truth: &dyn RewardMapping, contexts: Vec<Context>) -> Result<Self> {
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
            drawn: RwLock::default(),
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

    /// Lets the agent act in every test context and compares.
    pub fn score(&self, agent: &Agent) -> Result<Score> {
        match agent {
            Agent::Mixed(mixture) => {
                let drawn = mixture.mappings().iter().zip(mixture.shares()).filter(|entry| *entry.1 > 0.0);
                let mut mean = Marks::default();
                for (mapping, share) in drawn {
                    let own = self.marks_of_drawn(mapping)?;
                    mean.value += share * own.value;
                    mean.same += share * own.same;
                    mean.good += share * own.good;
                }
                Ok(self.scored(mean, None))
            }
            Agent::Planned(mapping) => {
                let (marks, expectations) = self.examine(agent)?;
                Ok(self.scored(marks, self.held_out_loss(mapping, &expectations)?))
            }
            // The loss of a mapping is that of planning for it, however the agent acts on it.
            Agent::Soft(soft) => {
                let planned = self.plans.plan(&self.contexts, &soft.mapping().weights_of_all(&self.contexts)?)?;
                let planned: Vec<Vec<f64>> = planned.into_iter().map(|(_, mu)| mu.to_vec()).collect();
                Ok(self.scored(self.examine(agent)?.0, self.held_out_loss(soft.mapping(), &planned)?))
            }
            _ => Ok(self.scored(self.examine(agent)?.0, None)),
        }
    }

    /// The same for an agent that plans in a model of its own, as it learned it, and acts in this one. Its plans are not
    /// optimal here even for its own reward, so there is no held-out loss.
    pub fn score_planned_in(&self, own: &Cmdp, agent: &Agent) -> Result<Score> {
        if own.pairs() != self.model.pairs() {
            let reason = "the agent's states, actions or admissible pairs differ from those of the model".into();
            return Err(Error::IncompatibleKernels { kernel: 0, reason });
        }
        let mut behaviours = behaviours(&RepeatedPlans::new(own), agent, &self.contexts)?;
        behaviours.par_iter_mut().zip(&self.contexts).try_for_each(|(list, context)| {
            let mdp = self.model.mdp(context)?;
            list.iter_mut().try_for_each(|behaviour| {
                behaviour.feature_expectations = evaluate::feature_expectations(&mdp, &behaviour.policy)?.into();
                Ok(())
            })
        })?;
        Ok(self.scored(self.compared(&behaviours)?.0, None))
    }

    fn scored(&self, marks: Marks, held_out_loss: Option<f64>) -> Score {
        let decisions = (self.contexts.len() * self.model.n_states()) as f64;
        Score {
            value: marks.value,
            value_ratio: marks.value / self.expert_value,
            relative_value: (marks.value - self.uniform_value) / (self.expert_value - self.uniform_value),
            accuracy: marks.same / decisions,
            optimal_accuracy: marks.good / decisions,
            held_out_loss,
        }
    }

    /// The marks of an agent, with its feature expectations in every test context.
    fn examine(&self, agent: &Agent) -> Result<(Marks, Vec<Vec<f64>>)> {
        self.compared(&behaviours(&self.plans, agent, &self.contexts)?)
    }

    /// The marks of policies, with their mean feature expectations.
    fn compared(&self, behaviours: &[Vec<Behaviour>]) -> Result<(Marks, Vec<Vec<f64>>)> {
        let marks = |(i, list): (usize, &Vec<Behaviour>)| -> Result<(f64, f64)> {
            list.iter().try_fold((0.0, 0.0), |sum, behaviour| {
                let (same, good) = self.marks(i, &behaviour.policy)?;
                Ok((sum.0 + behaviour.share * same, sum.1 + behaviour.share * good))
            })
        };
        let marks: Vec<(f64, f64)> = behaviours.par_iter().enumerate().map(marks).collect::<Result<_>>()?;
        let (same, good) = marks.iter().fold((0.0, 0.0), |sum, mark| (sum.0 + mark.0, sum.1 + mark.1));
        let expectations: Vec<Vec<f64>> = behaviours.iter().map(|list| mean_expectations(list)).collect();
        Ok((Marks { value: mean_value(&self.weights, &expectations), same, good }, expectations))
    }

    /// The marks of one mapping that a mixed agent may draw, from memory where they are known.
    fn marks_of_drawn(&self, mapping: &LinearMapping) -> Result<Marks> {
        let bits: Vec<u64> = mapping.values().iter().map(|w| w.to_bits()).collect();
        if let Some(marks) = self.drawn.read().ok().and_then(|known| known.get(&bits).copied()) {
            return Ok(marks);
        }
        let (marks, _) = self.examine(&Agent::Planned(mapping.clone()))?;
        if let Ok(mut known) = self.drawn.write()
            && known.len() < MOST_MARKS
        {
            known.insert(bits, marks);
        }
        Ok(marks)
    }

    /// In how many states a policy does what the expert does in a context, and in how many something as good; not a number
    /// for policies that change with time, which have no such count.
    fn marks(&self, context: usize, policy: &Policy) -> Result<(f64, f64)> {
        let Some(expert) = self.policies[context].actions() else {
            return Ok((f64::NAN, f64::NAN));
        };
        let pairs = self.model.pairs();
        let [stage] = evaluate::stage_distributions(pairs, policy, 1)?[..] else {
            return Ok((f64::NAN, f64::NAN));
        };
        let mut marks = (0.0, 0.0);
        for (s, wanted) in expert.iter().enumerate() {
            for pair in pairs.of_state(s) {
                let share = stage.share(s, pair);
                if share > 0.0 {
                    marks.0 += if pairs.action(pair) == *wanted { share } else { 0.0 };
                    marks.1 += if self.optimal[context][pair] { share } else { 0.0 };
                }
            }
        }
        Ok(marks)
    }

    fn held_out_loss(&self, mapping: &LinearMapping, agent: &[Vec<f64>]) -> Result<Option<f64>> {
        let own = mapping.weights_of_all(&self.contexts)?;
        let size = mapping.values().iter().map(|w| w * w).sum::<f64>().sqrt();
        let loss = mean_value(&own, agent) - mean_value(&own, &self.feature_expectations);
        Ok((size > 0.0).then(|| loss / size))
    }
}

/// μ of an agent that draws one of several policies.
fn mean_expectations(behaviours: &[Behaviour]) -> Vec<f64> {
    let mut mean = vec![0.0; behaviours.first().map_or(0, |behaviour| behaviour.feature_expectations.len())];
    for Behaviour { share, feature_expectations, .. } in behaviours {
        mean.iter_mut().zip(feature_expectations.iter()).for_each(|(sum, mu)| *sum += share * mu);
    }
    mean
}

/// Mean of w_i·μ_i.
fn mean_value(weights: &[f64], expectations: &[Vec<f64>]) -> f64 {
    let k = weights.len() / expectations.len();
    let dot = |(w, mu): (&[f64], &Vec<f64>)| w.iter().zip(mu).map(|(x, y)| x * y).sum::<f64>();
    weights.chunks_exact(k).zip(expectations).map(dot).sum::<f64>() / expectations.len() as f64
}
