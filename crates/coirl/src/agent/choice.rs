//! From scores of actions to a policy.

use crate::model::Cmdp;
use crate::plan::{Policy, log_softmax};

/// How an action is chosen by its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Among the known actions of a state only; else among all admissible ones.
    pub masked: bool,
    /// The likeliest (the lowest of equals) instead of one drawn.
    pub most_probable: bool,
}

impl Choice {
    /// The policy of these scores, one list per state as [`scores`] gives them: π(a | s) ∝ exp(score), or the largest score.
    pub(super) fn policy(self, model: &Cmdp, scores: impl Iterator<Item = Vec<f64>>) -> Policy {
        let pairs = model.pairs();
        if self.most_probable {
            let best = |(s, own): (usize, Vec<f64>)| pairs.action(pairs.of_state(s).start + largest(&own));
            return Policy::Stationary(scores.enumerate().map(best).collect());
        }
        Policy::Stochastic(scores.flat_map(|own| self.shares(own)).collect())
    }

    /// The probabilities of actions with these scores.
    pub(super) fn shares(self, mut scores: Vec<f64>) -> Vec<f64> {
        if self.most_probable {
            let best = largest(&scores);
            return (0..scores.len()).map(|i| f64::from(u8::from(i == best))).collect();
        }
        log_softmax(&mut scores, 1.0);
        scores.iter().map(|log| log.exp()).collect()
    }
}

/// The place of the largest score, the first of equals.
fn largest(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

/// Scores of one state's admissible actions, in pair order; −∞ where an action is masked.
pub(crate) fn scores(model: &Cmdp, state: usize, masked: bool, of_action: impl Fn(usize) -> f64) -> Vec<f64> {
    let pairs = model.pairs();
    let score = |pair: usize| {
        if masked && !model.is_known(pair) { f64::NEG_INFINITY } else { of_action(pairs.action(pair).index()) }
    };
    pairs.of_state(state).map(score).collect()
}
