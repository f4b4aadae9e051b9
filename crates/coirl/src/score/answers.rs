//! What an agent's actions are compared with: in every test context the expert's action in every state, the actions that are
//! as good, and how often the expert comes by.

use crate::error::Result;
use crate::model::{ActionId, Cmdp, Context, Pairs};
use crate::plan::{Policy, TIE_TOLERANCE, evaluate};
use rayon::prelude::*;
use std::sync::Arc;

/// What an agent came to in all test contexts: its mean value, and sums over contexts and states of the probability that it does
/// what the expert does. Of an agent that draws one of several policies they are the means over what it may draw.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    pub(super) value: f64,
    /// The expert's action, over all states.
    pub(super) same: f64,
    /// The expert's action, over the states with a choice.
    pub(super) same_by_choice: f64,
    /// The expert's action, over the states with a choice, weighted by the expert's visits.
    pub(super) same_on_the_way: f64,
    /// An action as good as the expert's, over all states.
    pub(super) good: f64,
}

impl Marks {
    /// Of what cannot be compared action by action.
    const NONE: Self =
        Self { value: 0.0, same: f64::NAN, same_by_choice: f64::NAN, same_on_the_way: f64::NAN, good: f64::NAN };

    pub(super) fn add_scaled(&mut self, share: f64, other: Self) {
        self.value += share * other.value;
        self.same += share * other.same;
        self.same_by_choice += share * other.same_by_choice;
        self.same_on_the_way += share * other.same_on_the_way;
        self.good += share * other.good;
    }
}

/// The expert's answers in one context.
struct Answer {
    policy: Policy,
    /// Whether each pair is optimal.
    optimal: Vec<bool>,
    /// The states with a choice that the expert visits, with how often.
    way: Vec<(usize, f64)>,
}

/// The expert's answers in all test contexts.
pub(super) struct Answers {
    pairs: Arc<Pairs>,
    choices: Vec<usize>,
    answers: Vec<Answer>,
    length_of_the_way: f64,
}

impl Answers {
    /// From the expert's policies with their optimal values and the true rewards (row-major weights). One linear system per context.
    pub(super) fn new(
        model: &Cmdp,
        contexts: &[Context],
        weights: &[f64],
        plans: Vec<(Policy, Vec<f64>)>,
    ) -> Result<Self> {
        let choices: Vec<usize> = model.states_with_a_choice().into_iter().map(|state| state.index()).collect();
        let k = model.n_features();
        let answer = |(i, (policy, values)): (usize, (Policy, Vec<f64>))| -> Result<Answer> {
            let mdp = model.mdp(&contexts[i])?;
            let q = evaluate::q_values(&mdp, &mdp.reward(&weights[i * k..(i + 1) * k])?, &values)?;
            let slack = TIE_TOLERANCE * q.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let mut optimal = vec![false; q.len()];
            for s in 0..mdp.n_states() {
                let pairs = mdp.pairs().of_state(s);
                let best = q[pairs.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                pairs.for_each(|pair| optimal[pair] = q[pair] >= best - slack);
            }
            let way = match policy.actions() {
                Some(_) => {
                    let visits = evaluate::occupancy(&mdp, &policy)?.of_states(mdp.pairs());
                    choices.iter().map(|&s| (s, visits[s])).filter(|entry| entry.1 > 0.0).collect()
                }
                None => Vec::new(),
            };
            Ok(Answer { policy, optimal, way })
        };
        let answers: Vec<Answer> = plans.into_par_iter().enumerate().map(answer).collect::<Result<_>>()?;
        let length_of_the_way = answers.iter().flat_map(|answer| &answer.way).map(|entry| entry.1).sum();
        Ok(Self { pairs: model.pairs().clone(), choices, answers, length_of_the_way })
    }

    /// States with a choice.
    pub(super) fn choices(&self) -> &[usize] {
        &self.choices
    }

    /// The expert's visits to states with a choice, over all contexts.
    pub(super) fn length_of_the_way(&self) -> f64 {
        self.length_of_the_way
    }

    /// The expert's actions in each context; none where they change with time.
    pub(super) fn actions(&self) -> impl Iterator<Item = &[ActionId]> {
        self.answers.iter().filter_map(|answer| answer.policy.actions())
    }

    /// The marks of a policy in a context, but for its value.
    pub(super) fn marks(&self, context: usize, policy: &Policy) -> Result<Marks> {
        let answer = &self.answers[context];
        let Some(expert) = answer.policy.actions() else {
            return Ok(Marks::NONE);
        };
        let pairs = &self.pairs;
        let [stage] = evaluate::stage_distributions(pairs, policy, 1)?[..] else {
            return Ok(Marks::NONE);
        };
        let mut agreement = vec![0.0; expert.len()];
        let mut good = 0.0;
        for (s, wanted) in expert.iter().enumerate() {
            for pair in pairs.of_state(s) {
                let share = stage.share(s, pair);
                if share > 0.0 {
                    agreement[s] += if pairs.action(pair) == *wanted { share } else { 0.0 };
                    good += if answer.optimal[pair] { share } else { 0.0 };
                }
            }
        }
        Ok(Marks {
            value: 0.0,
            same: agreement.iter().sum(),
            same_by_choice: self.choices.iter().map(|&s| agreement[s]).sum(),
            same_on_the_way: answer.way.iter().map(|&(s, visits)| visits * agreement[s]).sum(),
            good,
        })
    }
}
