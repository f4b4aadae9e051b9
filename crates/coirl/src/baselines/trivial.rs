//! What takes no learning: the least that a learner has to beat.
//!
//! | baseline | in state s and context c |
//! |---|---|
//! | majority | the action that was taken most often in s, over all contexts |
//! | nearest context | the action taken most often in s in the nearest context (∞-norm, the first of equals); unseen there: majority |
//! | uniform | every known action alike |
//!
//! In states that nobody was seen in, majority takes the known action that was taken most often anywhere. Among equals the
//! lowest action is taken.

use crate::agent::{Agent, KnownContexts, NearestActions};
use crate::demos::DemonstratedActions;
use crate::error::Result;
use crate::learn::{Guarantee, Learner, Problem, Record, Run, Start, Step};
use crate::model::{ActionId, Pairs};

/// The action taken most often in a state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Majority {}

/// The action taken most often in a state of the nearest context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NearestContext {}

/// Any action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {}

/// A way to act that is read off the demonstrations.
trait Trivial: Copy {
    /// The agent, with Σ π(a | s) over the demonstrated actions.
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)>;
}

impl Trivial for Majority {
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)> {
        let actions = problem.data().actions().or_refuse("majority")?;
        let chosen = majority(problem, actions);
        let pairs = problem.model().pairs();
        let agrees = |pair: usize| f64::from(u8::from(chosen[pairs.state(pair).index()] == pair));
        let agreement = (0..problem.len()).map(|i| actions.sum(i, agrees)).sum();
        Ok((Agent::Fixed(actions_of(pairs, &chosen)), agreement))
    }
}

impl Trivial for NearestContext {
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)> {
        let actions = problem.data().actions().or_refuse("nearest context")?;
        let (pairs, fall_back) = (problem.model().pairs(), majority(problem, actions));
        let (mut all, mut agreement) = (Vec::with_capacity(problem.len() * pairs.n_states()), 0.0);
        for i in 0..problem.len() {
            let mut chosen = fall_back.clone();
            let same_state = |a: &(usize, f64), b: &(usize, f64)| pairs.state(a.0) == pairs.state(b.0);
            for seen in actions.of_demonstration(i).chunk_by(same_state) {
                let (pair, count) =
                    seen.iter().fold(seen[0], |best, entry| if entry.1 > best.1 { *entry } else { best });
                chosen[pairs.state(pair).index()] = pair;
                agreement += count;
            }
            all.extend(actions_of(pairs, &chosen));
        }
        let known = KnownContexts::new(problem.data().dimension(), problem.data().context_values())?;
        Ok((Agent::Copied(NearestActions::new(known, all)?), agreement))
    }
}

impl Trivial for Uniform {
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)> {
        let (model, actions) = (problem.model(), problem.data().actions());
        let share = |pair: usize| match model.is_known(pair) {
            true => 1.0 / model.known_of_state(model.pairs().state(pair).index()).count() as f64,
            false => 0.0,
        };
        Ok((Agent::Uniform, (0..problem.len()).map(|i| actions.sum(i, share)).sum()))
    }
}

/// The pair of every state.
fn majority(problem: &Problem<'_>, actions: &DemonstratedActions) -> Vec<usize> {
    let (model, pairs) = (problem.model(), problem.model().pairs());
    let mut of_pair = vec![0.0; pairs.len()];
    let mut of_action = vec![0.0; pairs.n_actions()];
    for &(pair, count) in (0..problem.len()).flat_map(|i| actions.of_demonstration(i)) {
        of_pair[pair] += count;
        of_action[pairs.action(pair).index()] += count;
    }
    let most = |s: usize| {
        let own = pairs.of_state(s);
        let seen = of_pair[own.clone()].iter().any(|&count| count > 0.0);
        // A demonstrator may have done what nobody else does; where there was none, only known pairs come into question.
        let count = |pair: usize| match (seen, model.is_known(pair)) {
            (true, _) => of_pair[pair],
            (false, true) => of_action[pairs.action(pair).index()],
            (false, false) => f64::NEG_INFINITY,
        };
        own.clone().fold(own.start, |best, pair| if count(pair) > count(best) { pair } else { best })
    };
    (0..pairs.n_states()).map(most).collect()
}

fn actions_of(pairs: &Pairs, chosen: &[usize]) -> Vec<ActionId> {
    chosen.iter().map(|&pair| pairs.action(pair)).collect()
}

/// What a trivial method keeps: nothing.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

macro_rules! trivial {
    ($settings:ident) => {
        impl Learner for $settings {
            type State = Nothing;

            fn start(&self, problem: &Problem<'_>, _from: Start<'_>) -> Result<Nothing> {
                self.read_off(problem)?;
                Ok(Nothing {})
            }

            fn step(&self, _state: &mut Nothing, problem: &Problem<'_>, _run: Run) -> Result<Step> {
                let (_, agreement) = self.read_off(problem)?;
                let training_accuracy = problem.data().actions().mean(agreement);
                let demonstrations = problem.len() as u64;
                Ok(Step { record: Record { demonstrations, training_accuracy, ..Record::default() }, finished: true })
            }

            fn agent(&self, _state: &Nothing, problem: &Problem<'_>) -> Result<Agent> {
                Ok(self.read_off(problem)?.0)
            }

            fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
                Ok(1)
            }

            fn guarantee(
                &self,
                _state: &Nothing,
                _problem: &Problem<'_>,
                _steps: u64,
            ) -> Result<(Option<f64>, Guarantee)> {
                Ok((None, Guarantee::none("nothing_learned")))
            }
        }
    };
}

trivial!(Majority);
trivial!(NearestContext);
trivial!(Uniform);
