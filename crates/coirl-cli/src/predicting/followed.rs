//! Agents that do not plan for a mapping are followed as they are: one policy per context, which may draw its actions, or several of
//! which one is drawn when an episode begins. Nothing is transferred, and there is no bound.

use super::{Answers, Warned, named, warned};
use crate::failure::Failure;
use crate::fitting::agent_in_words;
use crate::numbers::{count, full, short};
use crate::plans::{MOST_ROWS, action_counts, action_name, rest};
use crate::text;
use coirl::agent::Agent;
use coirl::agent::{Behaviour, act};
use coirl::model::{ActionId, Cmdp, Context};
use coirl::plan::Policy;
use coirl_cohort::Unusual;
use serde::Serialize;
use std::io::Write;

/// Why there is no bound.
const NO_BOUND: &str = "none; bounds are of agents that plan for a mapping";
/// Actions of a state before the rest is only counted.
const MOST_ACTIONS: usize = 3;

/// The answers of an agent.
pub(crate) struct Followed<'a> {
    pub(crate) model: &'a Cmdp,
    pub(crate) agent: &'a Agent,
    /// What the numbers of a context are called.
    pub(crate) names: &'a [String],
    /// The states asked about; none for all.
    pub(crate) states: Option<&'a [usize]>,
    /// Whether one context was asked about, rather than a list that may hold one.
    pub(crate) single: bool,
    answers: Vec<Answer>,
    /// Fields of the context outside all those that were learned from.
    unusual: &'a [Unusual],
}

/// How the agent acts in a context.
struct Answer {
    context: Context,
    behaviours: Vec<Behaviour>,
    /// Where the agent has a mapping: what its own policy is worth under it.
    value: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PolicyKind {
    Deterministic,
    Stochastic,
    Mixture,
}

#[derive(Serialize)]
struct AnswerObject<'a> {
    context: &'a [f64],
    agent: &'static str,
    policy_is: PolicyKind,
    /// Of how many decisions the first is shown, where policies change with time.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_of_decisions: Option<usize>,
    value: Option<f64>,
    bound: Option<f64>,
    bound_is: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<Vec<StateObject<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<Vec<PolicyObject>>,
}

/// The actions of a state; of a mixture, as they are when an episode begins.
#[derive(Serialize)]
struct StateObject<'a> {
    state: usize,
    actions: Vec<ActionObject<'a>>,
}

#[derive(Serialize)]
struct ActionObject<'a> {
    action: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    probability: f64,
}

/// One action per state, or one probability per state and action.
#[derive(Serialize)]
struct PolicyObject {
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<Vec<f64>>>,
}

#[derive(Serialize)]
struct One<'a> {
    #[serde(flatten)]
    answer: AnswerObject<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warned<'a>>,
}

#[derive(Serialize)]
struct Many<'a> {
    predictions: Vec<AnswerObject<'a>>,
}

impl<'a> Followed<'a> {
    /// Asks the agent about every context.
    pub(crate) fn new(
        model: &'a Cmdp,
        agent: &'a Agent,
        names: &'a [String],
        states: Option<&'a [usize]>,
        single: bool,
        contexts: Vec<Context>,
        unusual: &'a [Unusual],
    ) -> Result<Self, Failure> {
        let behaviours = act(model, agent, &contexts)?;
        let mut answers = Vec::with_capacity(contexts.len());
        for (context, behaviours) in contexts.into_iter().zip(behaviours) {
            let weights = agent.reward_mapping().ok().map(|mapping| mapping.weights(&context)).transpose()?;
            let worth = |weights: Vec<f64>| {
                let own = |mu: &[f64]| weights.iter().zip(mu).map(|(w, x)| w * x).sum::<f64>();
                behaviours.iter().map(|behaviour| behaviour.share * own(&behaviour.feature_expectations)).sum()
            };
            answers.push(Answer { value: weights.map(worth), context, behaviours });
        }
        Ok(Self { model, agent, names, states, single, answers, unusual })
    }

    fn object(&self, answer: &'a Answer) -> AnswerObject<'a> {
        let name = |action: usize| self.model.names().actions.get(action).map(String::as_str);
        let actions = |state: usize| {
            let each = answer.actions(self.model, state).into_iter();
            each.map(|(action, probability)| ActionObject { action, name: name(action), probability }).collect()
        };
        let state = |&state: &usize| StateObject { state, actions: actions(state) };
        let policies = || answer.behaviours.iter().map(|behaviour| self.policy(behaviour)).collect();
        AnswerObject {
            context: answer.context.values(),
            agent: self.agent.kind(),
            policy_is: answer.kind(),
            first_of_decisions: answer.decisions(),
            value: answer.value,
            bound: None,
            bound_is: NO_BOUND,
            states: self.states.map(|states| states.iter().map(state).collect()),
            policies: self.states.is_none().then(policies),
        }
    }

    fn policy(&self, behaviour: &Behaviour) -> PolicyObject {
        let share = behaviour.share;
        if let Some(actions) = chosen(&behaviour.policy) {
            let policy = actions.iter().map(|action| action.0).collect();
            return PolicyObject { share, policy: Some(policy), probabilities: None };
        }
        let row = |state: usize| {
            let mut row = vec![0.0; self.model.n_actions()];
            actions(self.model, &behaviour.policy, state).into_iter().for_each(|(action, p)| row[action] = p);
            row
        };
        PolicyObject { share, policy: None, probabilities: Some((0..self.model.n_states()).map(row).collect()) }
    }

    fn asked(&self) -> Vec<usize> {
        self.states.map_or_else(|| (0..self.model.n_states()).collect(), <[usize]>::to_vec)
    }

    fn write_one(&self, out: &mut dyn Write, answer: &Answer) -> Result<(), Failure> {
        text::title(out, "How to act")?;
        text::pair(out, "context", &named(&answer.context, self.names))?;
        text::pair(out, "agent", &format!("{}: {}", self.agent.kind(), agent_in_words(self.agent)))?;
        text::pair(out, "policy", &self.policy_in_words(answer))?;
        if let Some(decisions) = answer.decisions() {
            text::pair(out, "", &format!("the first of {} decisions; later ones differ", count(decisions)))?;
        }
        if let Some(value) = answer.value {
            let says = "from the start, of this policy itself, for the learned mapping";
            text::pair(out, "value", &format!("{} {says}", short(value)))?;
        }
        text::pair(out, "bound", NO_BOUND)?;
        if self.states.is_some() || self.model.n_states() <= MOST_ROWS {
            let rows = self.asked().into_iter().flat_map(|state| self.rows(answer, state)).collect();
            writeln!(out)?;
            text::table(out, &["state", "action", "probability"], &[0, 2], rows)?;
        }
        Ok(())
    }

    fn write_many(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let states = self.states.unwrap_or_default();
        let names: Vec<String> = states.iter().map(|state| format!("state {state}")).collect();
        let valued = self.answers.iter().any(|answer| answer.value.is_some());
        let mut header = vec!["context", "policy"];
        header.extend(valued.then_some("value"));
        header.extend(names.iter().map(String::as_str));
        let row = |(i, answer): (usize, &Answer)| {
            let mut row = vec![i.to_string(), word(answer.kind()).into()];
            row.extend(answer.value.map(short));
            row.extend(states.iter().map(|&state| self.likeliest_in_words(answer, state)));
            row
        };
        let rows = self.answers.iter().enumerate().take(MOST_ROWS).map(row).collect();
        text::table(out, &header, if valued { &[0, 2] } else { &[0] }, rows)?;
        rest(out, self.answers.len(), "contexts")?;
        writeln!(out)?;
        text::pair(out, "agent", &format!("{}: {}", self.agent.kind(), agent_in_words(self.agent)))?;
        Ok(text::pair(out, "bounds", NO_BOUND)?)
    }

    fn policy_in_words(&self, answer: &Answer) -> String {
        match (answer.kind(), answer.behaviours.as_slice()) {
            (PolicyKind::Deterministic, [only]) => {
                format!("deterministic: {}", action_counts(self.model, &only.policy))
            }
            (PolicyKind::Mixture, all) => {
                format!("mixture: one of {} policies is drawn when an episode begins", count(all.len()))
            }
            _ => {
                let n = self.model.n_states();
                let likeliest = |state: usize| answer.actions(self.model, state).first().map_or(0.0, |entry| entry.1);
                let mean = (0..n).map(likeliest).sum::<f64>() / n as f64;
                let says = "an action is drawn in every state, the likeliest with probability";
                format!("stochastic: {says} {} in the mean of the states", short(mean))
            }
        }
    }

    /// The actions of a state, the likeliest first and the rest only counted.
    fn rows(&self, answer: &Answer, state: usize) -> Vec<Vec<String>> {
        let actions = answer.actions(self.model, state);
        let row = |(i, &(action, p)): (usize, &(usize, f64))| {
            let place = if i == 0 { state.to_string() } else { String::new() };
            vec![place, action_name(self.model, action), short(p)]
        };
        let mut rows: Vec<Vec<String>> = actions.iter().take(MOST_ACTIONS).enumerate().map(row).collect();
        if let Some(others @ [_, ..]) = actions.get(MOST_ACTIONS..) {
            let sum = others.iter().map(|entry| entry.1).sum();
            rows.push(vec![String::new(), format!("{} others", count(others.len())), short(sum)]);
        }
        rows
    }

    /// "0 keep" for sure, or "0 keep 0.7" among others.
    fn likeliest_in_words(&self, answer: &Answer, state: usize) -> String {
        match answer.actions(self.model, state)[..] {
            [] => String::new(),
            [(only, _)] => action_name(self.model, only),
            [(likeliest, p), ..] => format!("{} {}", action_name(self.model, likeliest), short(p)),
        }
    }
}

impl Answers for Followed<'_> {
    fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut predictions: Vec<AnswerObject<'_>> = self.answers.iter().map(|answer| self.object(answer)).collect();
        let text = match predictions.pop() {
            Some(only) if self.single => serde_json::to_string(&One { answer: only, warnings: warned(self.unusual) }),
            last => {
                predictions.extend(last);
                serde_json::to_string(&Many { predictions })
            }
        };
        Ok(writeln!(out, "{}", text.map_err(std::io::Error::from)?)?)
    }

    /// One row per context, policy, state and action that may be taken there.
    fn write_csv(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
        let mut table = csv::Writer::from_writer(out);
        let header = ["context", "policy", "share", "state", "action", "name", "probability"];
        table.write_record(header).map_err(refused)?;
        for (i, answer) in self.answers.iter().enumerate() {
            for (number, Behaviour { share, policy, .. }) in answer.behaviours.iter().enumerate() {
                for state in self.asked() {
                    for (action, probability) in actions(self.model, policy, state) {
                        let name = self.model.names().actions.get(action).cloned().unwrap_or_default();
                        let place = [i.to_string(), number.to_string(), full(*share), state.to_string()];
                        let taken = [action.to_string(), name, full(probability)];
                        table.write_record(place.into_iter().chain(taken)).map_err(refused)?;
                    }
                }
            }
        }
        Ok(table.flush()?)
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.answers.as_slice() {
            [answer] if self.single => self.write_one(out, answer),
            _ => self.write_many(out),
        }
    }
}

impl Answer {
    fn kind(&self) -> PolicyKind {
        match self.behaviours.as_slice() {
            [only] if chosen(&only.policy).is_some() => PolicyKind::Deterministic,
            [_] => PolicyKind::Stochastic,
            _ => PolicyKind::Mixture,
        }
    }

    /// Decisions of a policy that changes with time.
    fn decisions(&self) -> Option<usize> {
        match &self.behaviours.first()?.policy {
            Policy::Stationary(_) | Policy::Stochastic(_) => None,
            Policy::Staged(stages) => Some(stages.len()),
            Policy::StagedStochastic(stages) => Some(stages.len()),
        }
    }

    /// The actions that may be taken in a state when an episode begins there, the likeliest first.
    fn actions(&self, model: &Cmdp, state: usize) -> Vec<(usize, f64)> {
        let mut shares = vec![0.0; model.n_actions()];
        for behaviour in &self.behaviours {
            let own = actions(model, &behaviour.policy, state);
            own.into_iter().for_each(|(action, p)| shares[action] += behaviour.share * p);
        }
        let mut found: Vec<(usize, f64)> = shares.into_iter().enumerate().filter(|entry| entry.1 > 0.0).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found
    }
}

/// The actions that a policy may take first in a state, with their probabilities.
fn actions(model: &Cmdp, policy: &Policy, state: usize) -> Vec<(usize, f64)> {
    let probabilities = match policy {
        Policy::Stochastic(probabilities) => Some(probabilities),
        Policy::StagedStochastic(stages) => stages.first(),
        Policy::Stationary(_) | Policy::Staged(_) => None,
    };
    match (chosen(policy).and_then(|actions| actions.get(state)), probabilities) {
        (Some(action), _) => vec![(action.index(), 1.0)],
        (None, Some(probabilities)) => {
            let pairs = model.pairs();
            let each = pairs.of_state(state).map(|pair| (pairs.action(pair).index(), probabilities[pair]));
            each.filter(|entry| entry.1 > 0.0).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// One action per state, at first, where none is drawn.
fn chosen(policy: &Policy) -> Option<&[ActionId]> {
    match policy {
        Policy::Stationary(actions) => Some(actions),
        Policy::Staged(stages) => stages.first().map(Vec::as_slice),
        Policy::Stochastic(_) | Policy::StagedStochastic(_) => None,
    }
}

fn word(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Deterministic => "deterministic",
        PolicyKind::Stochastic => "stochastic",
        PolicyKind::Mixture => "mixture",
    }
}
