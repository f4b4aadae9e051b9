//! Scoring an agent against a known truth on contexts kept for testing.

use super::Score;
use super::answers::{Answers, Marks};
use crate::agent::{Agent, Behaviour, ContextualPolicy, behaviours, following};
use crate::contextual::{ContextualPlanner, plan_mapping};
use crate::error::{Error, Result};
use crate::mapping::{LinearMapping, ParametricMapping, RewardMapping};
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{ManyOptions, PlannedReward, Planner, Policy, evaluate};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::RwLock;

/// Mappings of mixed agents whose marks are kept.
const MOST_MARKS: usize = 100_000;

/// The expert's side of an examination, computed once.
pub struct Examination<'a> {
    model: &'a Cmdp,
    plans: ContextualPlanner<'a>,
    /// A mixed agent is examined again and again while it grows: the marks of what it may draw, by the bits of the mapping.
    drawn: RwLock<HashMap<Vec<u64>, Marks>>,
    contexts: Vec<Context>,
    weights: Vec<f64>,
    answers: Answers,
    feature_expectations: Vec<Vec<f64>>,
    expert_value: f64,
    random_value: f64,
}

impl<'a> Examination<'a> {
    /// Plans as the expert would, for every test context. For the criteria with stationary policies.
    pub fn new(model: &'a Cmdp, truth: &dyn RewardMapping, contexts: Vec<Context>) -> Result<Self> {
        if contexts.is_empty() {
            return Err(Error::shape("test contexts", "at least 1", 0));
        }
        let weights = truth.weights_of_all(&contexts)?;
        let options = ManyOptions { feature_expectations: true, values: true };
        let plans = plan_mapping(model, truth, &contexts, options)?;
        let mut expectations = Vec::with_capacity(plans.len());
        let mut found = Vec::with_capacity(plans.len());
        for PlannedReward { policy, values, feature_expectations, .. } in plans {
            expectations.push(feature_expectations.unwrap_or_default());
            found.push((policy, values.unwrap_or_default()));
        }
        let random = following(model, &contexts, &[model.random_policy()])?;
        let random: Vec<Vec<f64>> = random.iter().map(|list| mean_expectations(list)).collect();
        Ok(Self {
            model,
            plans: ContextualPlanner::new(model),
            drawn: RwLock::default(),
            answers: Answers::new(model, &contexts, &weights, found)?,
            expert_value: mean_value(&weights, &expectations),
            feature_expectations: expectations,
            random_value: mean_value(&weights, &random),
            weights,
            contexts,
        })
    }

    /// Mean value of the expert.
    pub fn expert_value(&self) -> f64 {
        self.expert_value
    }

    /// Mean value of acting at random, by known actions.
    pub fn random_value(&self) -> f64 {
        self.random_value
    }

    pub(super) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// The test contexts.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
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
                    mean.add_scaled(*share, self.marks_of_drawn(mapping)?);
                }
                Ok(self.scored(mean, None))
            }
            _ => {
                let (marks, expectations) = self.examine(agent)?;
                let loss = match agent.mapping() {
                    Ok(mapping) if agent.plans_for().is_some() => self.held_out_loss(mapping, &expectations)?,
                    // The loss of a mapping is that of planning for it, however the agent acts on it.
                    Ok(mapping) => self.held_out_loss(mapping, &self.examine(&Agent::Planned(mapping.clone()))?.1)?,
                    Err(_) => None,
                };
                Ok(self.scored(marks, loss))
            }
        }
    }

    /// The score of an agent that plans in a model of its own, as it learned it, and acts in this one. Its plans are not
    /// optimal here even for its own reward, so there is no held-out loss.
    pub fn score_planned_in(&self, own: &Cmdp, agent: &Agent) -> Result<Score> {
        if own.pairs() != self.model.pairs() {
            let reason = "the agent's states, actions or admissible pairs differ from those of the model".into();
            return Err(Error::IncompatibleKernels { kernel: 0, reason });
        }
        let mut behaviours = behaviours(&ContextualPlanner::new(own), agent, &self.contexts)?;
        behaviours.par_iter_mut().zip(&self.contexts).try_for_each(|(list, context)| {
            let mdp = self.model.mdp(context)?;
            list.iter_mut().try_for_each(|behaviour| {
                behaviour.feature_expectations = evaluate::feature_expectations(&mdp, &behaviour.policy)?.into();
                Ok(())
            })
        })?;
        Ok(self.scored(self.compared(&behaviours)?.0, None))
    }

    /// The score of policies: one per test context, or one for all.
    pub fn score_policies(&self, policies: &[Policy]) -> Result<Score> {
        let n = self.contexts.len();
        if policies.len() != 1 && policies.len() != n {
            return Err(Error::shape("policies", format!("1 for all test contexts or {n}, one each"), policies.len()));
        }
        let behaviours = following(self.model, &self.contexts, policies)?;
        Ok(self.scored(self.compared(&behaviours)?.0, None))
    }

    /// What an expert who could not tell the contexts apart would come to: the policy that is optimal for the mean of the true rewards in
    /// the process of the mean context, in all test contexts.
    pub fn one_policy(&self) -> Result<Score> {
        let mean = |rows: &mut dyn Iterator<Item = &[f64]>, width: usize| {
            let mut mean = vec![0.0; width];
            rows.for_each(|row| mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x));
            mean.iter_mut().for_each(|sum| *sum /= self.contexts.len() as f64);
            mean
        };
        let k = self.model.n_features();
        let reward = mean(&mut self.weights.chunks_exact(k), k);
        let mdp = match self.model.dynamics() {
            Dynamics::Shared(_) => self.model.shared_mdp()?,
            Dynamics::Mixture(_) | Dynamics::Clusters(_) => {
                let rows = &mut self.contexts.iter().map(Context::values);
                let typical = mean(rows, self.contexts[0].values().len());
                self.model.mdp(&self.model.context_space().context(typical)?)?
            }
        };
        self.score_policies(&[Planner::default().plan(&mdp, &mdp.reward(&reward)?)?.policy])
    }

    fn scored(&self, marks: Marks, held_out_loss: Option<f64>) -> Score {
        let n = self.contexts.len();
        let decisions = (n * self.model.n_states()) as f64;
        Score {
            value: marks.value,
            // Of losses the worse agent has the larger share.
            value_ratio: if self.expert_value > 0.0 { marks.value / self.expert_value } else { f64::NAN },
            relative_value: (marks.value - self.random_value) / (self.expert_value - self.random_value),
            accuracy: marks.same / decisions,
            choice_accuracy: marks.same_by_choice / (n * self.answers.choices().len()) as f64,
            visited_accuracy: marks.same_on_the_way / self.answers.length_of_the_way(),
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
        let marks = |(i, list): (usize, &Vec<Behaviour>)| -> Result<Marks> {
            list.iter().try_fold(Marks::default(), |mut sum, behaviour| {
                sum.add_scaled(behaviour.share, self.answers.marks(i, &behaviour.policy)?);
                Ok(sum)
            })
        };
        let each: Vec<Marks> = behaviours.par_iter().enumerate().map(marks).collect::<Result<_>>()?;
        let expectations: Vec<Vec<f64>> = behaviours.iter().map(|list| mean_expectations(list)).collect();
        let mut sum = Marks { value: mean_value(&self.weights, &expectations), ..Marks::default() };
        each.into_iter().for_each(|marks| sum.add_scaled(1.0, marks));
        Ok((sum, expectations))
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

    fn held_out_loss(&self, mapping: &LinearMapping, agent: &[Vec<f64>]) -> Result<Option<f64>> {
        let own = mapping.weights_of_all(&self.contexts)?;
        let size = mapping.size(&own);
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
