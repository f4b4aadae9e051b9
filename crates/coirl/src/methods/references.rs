//! What a fit has to beat: rules that need no reward, on demonstrations that were left out.
//!
//! | rule | probability of an action |
//! |---|---|
//! | shares | its share of all training decisions |
//! | state | its share of the training decisions in the same state, with one decision's worth of the shares above |
//! | previous | what was done last in the same trajectory, as often as that was repeated in training; else as by state |
//! | cloning | logistic regression on context and state ([`Cloning`]) |
//!
//! All are among the known actions of states with a choice, as the choice model is.

use super::{Method, Settings, fit};
use crate::agent::Predictions;
use crate::baselines::Cloning;
use crate::error::Result;
use crate::learn::{Problem, Watch};
use crate::model::{Cmdp, Context, StateId};
use crate::random::stream;
use rand::seq::SliceRandom;

/// Parts that demonstrations are divided into, and how many take part.
const FOLDS: usize = 3;
const MOST_COMPARED: usize = 150;
/// Steps of cloning, and decisions times inputs beyond which it would take too long.
const CLONING_STEPS: u64 = 40;
const CLONING_PENALTY: f64 = 3.0;
const CLONING_COMPONENTS: usize = 16;
const MOST_CLONED: usize = 40_000_000;

/// A rule that needs no reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The shares of all training decisions.
    Shares,
    /// The shares of the training decisions in the same state.
    State,
    /// What was done last in the same trajectory.
    Previous,
    /// Logistic regression on context and state.
    Cloning,
}

/// How a rule does on demonstrations that were left out.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Reference {
    /// The rule.
    pub rule: Rule,
    /// Mean log-likelihood of a decision.
    pub log_likelihood: f64,
    /// Share of the decisions for which its likeliest action was taken.
    pub accuracy: f64,
}

/// A decision: where, what, and what was done before.
#[derive(Clone, Copy)]
struct Decision {
    state: usize,
    pair: usize,
    previous: Option<usize>,
}

/// Sums over decisions.
#[derive(Clone, Copy, Default)]
struct Sums {
    log_likelihood: f64,
    same: f64,
    n: f64,
}

impl Sums {
    fn add(&mut self, probabilities: &[(usize, f64)], taken: usize) {
        let own = probabilities.iter().find(|entry| entry.0 == taken).map_or(0.0, |entry| entry.1);
        let best = probabilities.iter().fold((usize::MAX, -1.0), |best, new| if new.1 > best.1 { *new } else { best });
        self.log_likelihood += own.max(1e-12).ln();
        self.same += f64::from(u8::from(best.0 == taken));
        self.n += 1.0;
    }

    fn reference(self, rule: Rule) -> Option<Reference> {
        let (log_likelihood, accuracy) = (self.log_likelihood / self.n, self.same / self.n);
        (self.n > 0.0).then_some(Reference { rule, log_likelihood, accuracy })
    }
}

/// The rules on the demonstrations of a problem, each left out once; none where single actions are not known of all of them or there are
/// fewer than three.
pub fn references(problem: &Problem<'_>, seed: u64) -> Result<Vec<Reference>> {
    let (data, model) = (problem.data(), problem.model());
    let known_by_actions = (0..data.len()).all(|i| !data.trajectories(i).is_empty());
    if data.len() < FOLDS || !known_by_actions {
        return Ok(Vec::new());
    }
    let decisions: Vec<Vec<Decision>> = (0..data.len()).map(|i| decisions_of(problem, i)).collect();
    let mut order: Vec<usize> = (0..data.len()).collect();
    order.shuffle(&mut stream(seed, "folds of the references", 0));
    order.truncate(MOST_COMPARED);
    let mut sums = [Sums::default(); 4];
    let size =
        decisions.iter().map(Vec::len).sum::<usize>() * (data.dimension() + model.n_features() + 1) * model.n_actions();
    for out in 0..FOLDS {
        let part = |held: bool| {
            order.iter().copied().enumerate().filter(move |(at, _)| (at % FOLDS == out) == held).map(|(_, i)| i)
        };
        let seen: Vec<Decision> = part(false).flat_map(|i| decisions[i].iter().copied()).collect();
        let habits = Habits::new(model, &seen);
        for decision in part(true).flat_map(|i| decisions[i].iter().copied()) {
            sums[0].add(&habits.shares(model, decision.state), decision.pair);
            sums[1].add(&habits.by_state(model, decision.state), decision.pair);
            sums[2].add(&habits.by_previous(model, decision), decision.pair);
        }
        if size <= MOST_CLONED && !seen.is_empty() {
            let (kept, held): (Vec<usize>, Vec<usize>) = (part(false).collect(), part(true).collect());
            cloned(problem, &kept, &held, &decisions, seed, &mut sums[3])?;
        }
    }
    let rules = [Rule::Shares, Rule::State, Rule::Previous, Rule::Cloning];
    Ok(rules.into_iter().zip(sums).filter_map(|(rule, sums)| sums.reference(rule)).collect())
}

/// The decisions of a demonstration, in order: known actions in states that have several and can be left.
fn decisions_of(problem: &Problem<'_>, index: usize) -> Vec<Decision> {
    let model = problem.model();
    let mut decisions = Vec::new();
    for path in problem.data().trajectories(index) {
        let mut previous = None;
        for (state, action) in path.states.iter().zip(&path.actions) {
            let state = state.index();
            let pair = model.pairs().find(state, action.index()).filter(|&pair| model.is_known(pair));
            let choice = model.known_of_state(state).nth(1).is_some() && !model.dynamics().is_absorbing(state);
            if let Some(pair) = pair.filter(|_| choice) {
                decisions.push(Decision { state, pair, previous });
            }
            previous = Some(action.index());
        }
    }
    decisions
}

/// What training decisions say without a reward.
struct Habits {
    by_action: Vec<f64>,
    by_pair: Vec<f64>,
    /// How often the last action was repeated where it could be.
    repeated: f64,
}

impl Habits {
    fn new(model: &Cmdp, seen: &[Decision]) -> Self {
        let mut own =
            Self { by_action: vec![1.0; model.n_actions()], by_pair: vec![0.0; model.pairs().len()], repeated: 0.0 };
        let (mut again, mut possible) = (0.5, 1.0);
        for decision in seen {
            let action = model.pairs().action(decision.pair).index();
            own.by_action[action] += 1.0;
            own.by_pair[decision.pair] += 1.0;
            if decision
                .previous
                .is_some_and(|last| model.pairs().find(decision.state, last).is_some_and(|pair| model.is_known(pair)))
            {
                possible += 1.0;
                again += f64::from(u8::from(decision.previous == Some(action)));
            }
        }
        own.repeated = again / possible;
        own
    }

    fn shares(&self, model: &Cmdp, state: usize) -> Vec<(usize, f64)> {
        let weight = |pair: usize| self.by_action[model.pairs().action(pair).index()];
        let total: f64 = model.known_of_state(state).map(weight).sum();
        model.known_of_state(state).map(|pair| (pair, weight(pair) / total)).collect()
    }

    fn by_state(&self, model: &Cmdp, state: usize) -> Vec<(usize, f64)> {
        let total: f64 = model.known_of_state(state).map(|pair| self.by_pair[pair]).sum();
        self.shares(model, state)
            .into_iter()
            .map(|(pair, p)| (pair, (self.by_pair[pair] + p) / (total + 1.0)))
            .collect()
    }

    fn by_previous(&self, model: &Cmdp, decision: Decision) -> Vec<(usize, f64)> {
        let mut own = self.by_state(model, decision.state);
        let last = decision.previous.and_then(|last| model.pairs().find(decision.state, last));
        if own.iter().any(|entry| Some(entry.0) == last) {
            for (pair, p) in &mut own {
                *p = (1.0 - self.repeated) * *p + if Some(*pair) == last { self.repeated } else { 0.0 };
            }
        }
        own
    }
}

/// Cloning from some demonstrations, on others.
fn cloned(
    problem: &Problem<'_>,
    kept: &[usize],
    held: &[usize],
    decisions: &[Vec<Decision>],
    seed: u64,
    sums: &mut Sums,
) -> Result<()> {
    // Held back as much as a few decisions can bear, so that it is a rule to be reckoned with.
    let seen: usize = kept.iter().map(|&i| decisions[i].len()).sum();
    let penalty = CLONING_PENALTY / seen.max(1) as f64;
    let cloning = Cloning { penalty, interactions: false, components: Some(CLONING_COMPONENTS), ..Cloning::default() };
    let mut settings = Settings::new(Method::Cloning(cloning));
    (settings.seed, settings.stop.max_steps, settings.record_every) = (seed, Some(CLONING_STEPS), Some(0));
    let agent = fit(&problem.select(kept)?, &settings, Watch::default(), &mut ())?.agent;
    let (model, data) = (problem.model(), problem.data());
    let contexts: Vec<Context> = held.iter().map(|&i| data.contexts()[i].clone()).collect();
    let states = |i: usize| decisions[i].iter().map(|decision| StateId(decision.state as u32)).collect::<Vec<_>>();
    let visited: Vec<Vec<StateId>> = held.iter().map(|&i| states(i)).collect();
    let visits: Vec<&[StateId]> = visited.iter().map(Vec::as_slice).collect();
    let predictions = Predictions::of(model, &agent, &contexts, &visits)?;
    let rows = predictions.probabilities().chunks_exact(model.n_actions());
    for (row, decision) in rows.zip(held.iter().flat_map(|&i| &decisions[i])) {
        let own: Vec<(usize, f64)> =
            model.known_of_state(decision.state).map(|pair| (pair, row[model.pairs().action(pair).index()])).collect();
        sums.add(&own, decision.pair);
    }
    Ok(())
}
