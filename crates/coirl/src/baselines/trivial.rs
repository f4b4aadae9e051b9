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
use crate::error::Result;
use crate::learn::DemonstratedActions;
use crate::learn::{Algorithm, Problem, Run, Step};
use crate::model::{ActionId, Pairs};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
pub(crate) trait Trivial: Copy + Serialize + DeserializeOwned {
    /// The agent, with Σ π(a | s) over the demonstrated actions.
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)>;
}

impl Trivial for Majority {
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)> {
        let actions = DemonstratedActions::needed(problem, "majority")?;
        let chosen = majority(problem, &actions);
        let pairs = problem.model().pairs();
        let agrees = |pair: usize| f64::from(u8::from(chosen[pairs.state(pair).index()] == pair));
        let agreement = (0..problem.len()).map(|i| actions.sum(i, agrees)).sum();
        Ok((Agent::Fixed(actions_of(pairs, &chosen)), agreement))
    }
}

impl Trivial for NearestContext {
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)> {
        let actions = DemonstratedActions::needed(problem, "nearest context")?;
        let (pairs, fall_back) = (problem.model().pairs(), majority(problem, &actions));
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
        let known = KnownContexts::new(problem.dimension(), problem.all_contexts())?;
        Ok((Agent::Copied(NearestActions::new(known, all)?), agreement))
    }
}

impl Trivial for Uniform {
    fn read_off(self, problem: &Problem<'_>) -> Result<(Agent, f64)> {
        let (model, actions) = (problem.model(), DemonstratedActions::of(problem)?);
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
        // Whoever was seen may have done what nobody else does; where nobody was seen, only what is known comes into question.
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

/// What a trivial method keeps: nothing but which it is.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State<S> {
    which: S,
}

impl<S: Trivial> Algorithm for State<S> {
    type Settings = S;

    fn start(own: &S, problem: &Problem<'_>, _initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        own.read_off(problem)?;
        Ok(Self { which: *own })
    }

    fn step(&mut self, own: &S, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let (_, agreement) = own.read_off(problem)?;
        Ok(Step {
            demonstrations: problem.len() as u64,
            training_accuracy: DemonstratedActions::of(problem)?.mean(agreement),
            finished: true,
            ..Step::default()
        })
    }

    fn fits(&self, _problem: &Problem<'_>) -> bool {
        true
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        None
    }

    fn agent(&self, problem: &Problem<'_>) -> Result<Agent> {
        Ok(self.which.read_off(problem)?.0)
    }

    fn default_steps(_own: &S, _problem: &Problem<'_>) -> u64 {
        1
    }

    fn bound(&self, _own: &S, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        Ok((None, "nothing was learned: nothing bounds what is lost".into()))
    }
}
