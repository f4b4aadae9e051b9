//! What an agent would have done where somebody else was seen to act.
//!
//! An agent that plans takes one action, and its Q-values rank the others: Q(s, a) of the optimal policy for f(c). Where a probability is asked of it, it
//! is that of somebody who mostly does what is best, π(a | s) ∝ exp(Q(s, a)/τ), with τ from decisions that are not scored. Other agents have
//! probabilities of their own. Costs a plan per context and a backup per visit.

use super::behaviour::act;
use super::repeated::RepeatedPlans;
use crate::agent::Agent;
use crate::error::{Result, check_length};
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, Context, StateId};
use crate::plan::{evaluate, log_softmax};
use rayon::prelude::*;

/// Contexts that are planned for at a time.
const WAVE: usize = 256;
/// Temperatures that are tried, as shares of the typical difference between two actions: from a hundredth to a hundred times it.
const TEMPERATURES: [f64; 2] = [-2.0, 2.0];
const TEMPERATURES_TRIED: usize = 41;

/// What an agent would do at every visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    n_actions: usize,
    /// Row-major [visit, action].
    probabilities: Vec<f64>,
    /// Q(s, a) at every visit, row-major; the least of its row for actions that cannot be taken.
    action_values: Option<Vec<f64>>,
}

impl Predictions {
    /// At the states visited in each context. Agents that draw a policy when a stay begins are taken to do what they do on average.
    pub fn of(model: &Cmdp, agent: &Agent, contexts: &[Context], visits: &[&[StateId]]) -> Result<Self> {
        check_length("visited states (one list per context)", contexts.len(), visits.len())?;
        let n_actions = model.n_actions();
        let n_visits: usize = visits.iter().map(|visited| visited.len()).sum();
        let mut probabilities = Vec::with_capacity(n_visits * n_actions);
        let mut values: Vec<f64> = Vec::new();
        let planned = agent.planned_for();
        for (contexts, visits) in contexts.chunks(WAVE).zip(visits.chunks(WAVE)) {
            if let Some(mapping) = &planned {
                let weights = mapping.weights_of_all(contexts)?;
                let plans = RepeatedPlans::new(model).values(contexts, &weights)?;
                let k = model.n_features();
                let rows = |i: usize| -> Result<Vec<f64>> {
                    let mdp = model.mdp(&contexts[i])?;
                    let reward = mdp.reward(&weights[i * k..(i + 1) * k])?;
                    let gamma = mdp.criterion().discount();
                    let mut rows = Vec::with_capacity(visits[i].len() * n_actions);
                    for state in visits[i] {
                        let mut row = vec![f64::NAN; n_actions];
                        for pair in mdp.pairs().of_state(state.index()) {
                            let later = mdp.kernel().expect(pair, &plans[i].1);
                            row[mdp.pairs().action(pair).index()] = reward.at(state.index(), pair) + gamma * later;
                        }
                        let least = row.iter().copied().fold(f64::INFINITY, f64::min);
                        row.iter_mut().filter(|q| q.is_nan()).for_each(|q| *q = least);
                        rows.extend(row);
                    }
                    Ok(rows)
                };
                let rows: Vec<Vec<f64>> = (0..contexts.len()).into_par_iter().map(rows).collect::<Result<_>>()?;
                for (i, rows) in rows.into_iter().enumerate() {
                    values.extend(rows);
                    let stages = evaluate::stage_distributions(model.pairs(), &plans[i].0, 1)?;
                    append(model, &mut probabilities, visits[i], |state, pair| stages[0].share(state, pair));
                }
            } else {
                for (own, visited) in act(model, agent, contexts)?.iter().zip(visits) {
                    let policies: Vec<_> = own.iter().map(|behaviour| (behaviour.share, &behaviour.policy)).collect();
                    let stages = policies
                        .iter()
                        .map(|(share, policy)| Ok((*share, evaluate::stage_distributions(model.pairs(), policy, 1)?)))
                        .collect::<Result<Vec<_>>>()?;
                    append(model, &mut probabilities, visited, |state, pair| {
                        stages.iter().map(|(share, stage)| share * stage[0].share(state, pair)).sum()
                    });
                }
            }
        }
        Ok(Self { n_actions, probabilities, action_values: planned.is_some().then_some(values) })
    }

    /// Number of actions.
    pub fn n_actions(&self) -> usize {
        self.n_actions
    }

    /// The probability of every action, row-major [visit, action].
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// What ranks the actions of an agent that plans.
    pub fn action_values(&self) -> Option<&[f64]> {
        self.action_values.as_deref()
    }

    /// Share of the visits at which the likeliest action, the lowest of equals, is the one taken.
    pub fn accuracy(&self, taken: &[u32]) -> f64 {
        let rows = self.probabilities.chunks_exact(self.n_actions);
        let best = |row: &[f64]| (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best });
        let same = rows.zip(taken).filter(|(row, action)| best(row) == **action as usize).count();
        same as f64 / taken.len().max(1) as f64
    }

    /// The probabilities of an agent that plans, were it to do what is best mostly; others are as they are.
    pub fn at_temperature(&self, temperature: f64) -> Vec<f64> {
        let Some(values) = &self.action_values else {
            return self.probabilities.clone();
        };
        let mut probabilities = values.clone();
        for row in probabilities.chunks_exact_mut(self.n_actions) {
            log_softmax(row, temperature);
            row.iter_mut().for_each(|log| *log = log.exp());
        }
        probabilities
    }

    /// The temperature at which these actions are likeliest; none for agents with probabilities of their own.
    pub fn likeliest_temperature(&self, taken: &[u32]) -> Option<f64> {
        let values = self.action_values.as_ref()?;
        let rows = || values.chunks_exact(self.n_actions);
        let spread = |row: &[f64]| {
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            most - row.iter().sum::<f64>() / row.len() as f64
        };
        let typical = rows().map(spread).sum::<f64>() / rows().len().max(1) as f64;
        if !(typical > 0.0) {
            return None;
        }
        let [low, high] = TEMPERATURES;
        let step = (high - low) / (TEMPERATURES_TRIED - 1) as f64;
        let tried = (0..TEMPERATURES_TRIED).map(|i| typical * 10f64.powf(low + step * i as f64));
        let mut scratch = vec![0.0; self.n_actions];
        let mut likelihood = |temperature: f64| {
            let mut sum = 0.0;
            for (row, &action) in rows().zip(taken) {
                scratch.copy_from_slice(row);
                log_softmax(&mut scratch, temperature);
                sum += scratch[action as usize];
            }
            sum
        };
        let scored: Vec<(f64, f64)> = tried.map(|temperature| (temperature, likelihood(temperature))).collect();
        scored.into_iter().reduce(|best, new| if new.1 > best.1 { new } else { best }).map(|best| best.0)
    }
}

fn append(model: &Cmdp, rows: &mut Vec<f64>, visited: &[StateId], share: impl Fn(usize, usize) -> f64) {
    for state in visited {
        let start = rows.len();
        rows.resize(start + model.n_actions(), 0.0);
        for pair in model.pairs().of_state(state.index()) {
            rows[start + model.pairs().action(pair).index()] = share(state.index(), pair);
        }
    }
}
