//! What an agent would have done where somebody else was seen to act.
//!
//! An agent that plans takes one action, and its Q-values rank the others: Q(s, a) of the optimal policy for f(c). Where a probability is asked of it, it
//! is that of somebody who mostly does what is best; other agents have probabilities of their own. Nobody is without lapses:
//!
//! ```text
//! π(a | s) = (1 − ε) p(a | s) + ε / |A|,     p(a | s) ∝ exp(Q(s, a)/τ) for agents that plan
//! ```
//!
//! with τ and ε from decisions that are not scored ([`Predictions::calibrated_on`]). Costs a plan per context and a backup per visit.

use super::behaviour::{ContextualPolicy, policies};
use crate::contextual::ContextualPlanner;
use crate::error::{Result, check_length};
use crate::model::{Cmdp, Context, StateId};
use crate::plan::{evaluate, log_softmax};
use rayon::prelude::*;

/// Contexts that are planned for at a time.
const WAVE: usize = 256;
/// Temperatures that are tried, as shares of the typical difference between two actions: from a hundredth to a hundred times it.
const TEMPERATURES: [f64; 2] = [-2.0, 2.0];
const TEMPERATURES_TRIED: usize = 41;
/// Shares of lapses that are tried.
const LAPSES: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.4, 0.8];

/// How sure an agent is of what it does, found on other decisions than those that are scored.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Confidence {
    /// τ; none for agents with probabilities of their own.
    pub temperature: Option<f64>,
    /// ε.
    pub lapses: f64,
}

/// What an agent would do at every visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    n_actions: usize,
    /// Row-major [visit, action].
    probabilities: Vec<f64>,
    /// Q(s, a) at every visit, row-major; −∞ for actions that cannot be taken.
    action_values: Option<Vec<f64>>,
}

impl Predictions {
    /// At the states visited in each context; a cloned network is asked about these only. Agents that draw a policy when a stay begins are taken to do what they do on average.
    pub fn of(model: &Cmdp, agent: &dyn ContextualPolicy, contexts: &[Context], visits: &[&[StateId]]) -> Result<Self> {
        check_length("visited states (one list per context)", contexts.len(), visits.len())?;
        let n_actions = model.n_actions();
        let n_visits: usize = visits.iter().map(|visited| visited.len()).sum();
        let mut probabilities = Vec::with_capacity(n_visits * n_actions);
        let mut values: Vec<f64> = Vec::new();
        let planned = agent.plans_for();
        let planner = ContextualPlanner::new(model);
        for (contexts, visits) in contexts.chunks(WAVE).zip(visits.chunks(WAVE)) {
            if let Some(mapping) = planned {
                let weights = mapping.weights_of_all(contexts)?;
                let plans = planner.values(&contexts.iter().collect::<Vec<_>>(), &weights)?;
                let k = model.n_features();
                let rows = |i: usize| -> Result<Vec<f64>> {
                    let mdp = model.mdp(&contexts[i])?;
                    let reward = mdp.reward(&weights[i * k..(i + 1) * k])?;
                    let gamma = mdp.criterion().discount();
                    let mut rows = Vec::with_capacity(visits[i].len() * n_actions);
                    for state in visits[i] {
                        let mut row = vec![f64::NEG_INFINITY; n_actions];
                        for pair in model.known_of_state(state.index()) {
                            let later = mdp.kernel().expect(pair, &plans[i].1);
                            row[mdp.pairs().action(pair).index()] = reward.at(state.index(), pair) + gamma * later;
                        }
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
            } else if let Some(rows) = at_visits(model, agent, contexts, visits)? {
                probabilities.extend(rows.into_iter().flatten());
            } else {
                for (own, visited) in policies(model, agent, contexts)?.iter().zip(visits) {
                    let stages = own
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

    /// What ranks the actions of an agent that plans: Q(s, a), and less than any other where an action cannot be taken.
    pub fn ranks(&self) -> Option<Vec<f64>> {
        let values = self.action_values.as_ref()?;
        let finite = |row: &[f64]| {
            let least = row.iter().copied().filter(|q| q.is_finite()).fold(f64::INFINITY, f64::min);
            row.iter().map(|q| if q.is_finite() { *q } else { least - 1.0 }).collect::<Vec<f64>>()
        };
        Some(values.chunks_exact(self.n_actions).flat_map(finite).collect())
    }

    /// Share of the visits at which the likeliest action, the lowest of equals, is the one taken.
    pub fn accuracy(&self, taken: &[u32]) -> f64 {
        let rows = self.probabilities.chunks_exact(self.n_actions);
        let best = |row: &[f64]| (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best });
        let same = rows.zip(taken).filter(|(row, action)| best(row) == **action as usize).count();
        same as f64 / taken.len().max(1) as f64
    }

    /// The probabilities of somebody so sure.
    pub fn with_confidence(&self, confidence: Confidence) -> Vec<f64> {
        let mut probabilities = match (&self.action_values, confidence.temperature) {
            (Some(values), Some(temperature)) => {
                let mut rows = values.clone();
                for row in rows.chunks_exact_mut(self.n_actions) {
                    log_softmax(row, temperature);
                    row.iter_mut().for_each(|log| *log = log.exp());
                }
                rows
            }
            _ => self.probabilities.clone(),
        };
        let lapse = confidence.lapses / self.n_actions as f64;
        probabilities.iter_mut().for_each(|p| *p = (1.0 - confidence.lapses) * *p + lapse);
        probabilities
    }

    /// How sure the agent should be for these actions to be likeliest.
    pub fn calibrated_on(&self, taken: &[u32]) -> Confidence {
        let likelihood = |chosen: &[f64], lapses: f64| -> f64 {
            let lapse = lapses / self.n_actions as f64;
            chosen.iter().map(|p| ((1.0 - lapses) * p + lapse).ln()).sum()
        };
        let best_lapses = |chosen: &[f64]| {
            let scored = LAPSES.map(|lapses| (lapses, likelihood(chosen, lapses)));
            scored.into_iter().fold((LAPSES[0], f64::NEG_INFINITY), |best, new| if new.1 > best.1 { new } else { best })
        };
        let of_taken = |row: &[f64], action: &u32| row.get(*action as usize).copied().unwrap_or(0.0);
        let Some(values) =
            self.action_values.as_ref().filter(|values| typical_difference(values, self.n_actions) > 0.0)
        else {
            let rows = self.probabilities.chunks_exact(self.n_actions);
            let chosen: Vec<f64> = rows.zip(taken).map(|(row, action)| of_taken(row, action)).collect();
            return Confidence { temperature: None, lapses: best_lapses(&chosen).0 };
        };
        let typical = typical_difference(values, self.n_actions);
        let [low, high] = TEMPERATURES;
        let step = (high - low) / (TEMPERATURES_TRIED - 1) as f64;
        let tried = |i: usize| {
            let temperature = typical * 10f64.powf(low + step * i as f64);
            let mut scratch = vec![0.0; self.n_actions];
            let probability = |(row, action): (&[f64], &u32)| {
                scratch.copy_from_slice(row);
                log_softmax(&mut scratch, temperature);
                of_taken(&scratch, action).exp()
            };
            let chosen: Vec<f64> = values.chunks_exact(self.n_actions).zip(taken).map(probability).collect();
            let (lapses, likelihood) = best_lapses(&chosen);
            (Confidence { temperature: Some(temperature), lapses }, likelihood)
        };
        let scored: Vec<(Confidence, f64)> = (0..TEMPERATURES_TRIED).into_par_iter().map(tried).collect();
        let sure = (Confidence { temperature: Some(typical), lapses: LAPSES[0] }, f64::NEG_INFINITY);
        scored.into_iter().fold(sure, |best, new| if new.1 > best.1 { new } else { best }).0
    }
}

/// How much better the best action is than the mean of those that can be taken, on average.
fn typical_difference(values: &[f64], n_actions: usize) -> f64 {
    let difference = |row: &[f64]| {
        let finite = || row.iter().copied().filter(|q| q.is_finite());
        finite().fold(f64::NEG_INFINITY, f64::max) - finite().sum::<f64>() / finite().count().max(1) as f64
    };
    let rows = values.chunks_exact(n_actions);
    let n = rows.len().max(1) as f64;
    rows.map(difference).sum::<f64>() / n
}

/// The probabilities at the visited states of each context, of agents that can be asked about single states.
fn at_visits(
    model: &Cmdp,
    agent: &dyn ContextualPolicy,
    contexts: &[Context],
    visits: &[&[StateId]],
) -> Result<Option<Vec<Vec<f64>>>> {
    let rows = |(context, visited): (&Context, &&[StateId])| agent.probabilities_at(model, context, visited);
    let rows: Vec<Option<Vec<f64>>> = contexts.par_iter().zip(visits.par_iter()).map(rows).collect::<Result<_>>()?;
    for (row, visited) in rows.iter().zip(visits) {
        let wanted = visited.len() * model.n_actions();
        row.as_ref().map_or(Ok(()), |row| check_length("probabilities of an agent", wanted, row.len()))?;
    }
    Ok(rows.into_iter().collect())
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
