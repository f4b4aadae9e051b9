//! Leaving out policies that never win.
//!
//! On given contexts a policy is kept if in some state it is needed for the best continuation of the chosen action, up
//! to what counts as a tie. The actions are then compared with those of the whole library; where they differ, the very
//! policies that attain the maxima are kept too. A state settled so stays settled, so the comparison ends after at most
//! as many rounds as there are policies. On the given contexts nothing changes; elsewhere the theorem's bound is that of
//! the contexts that are left. Cost: one improvement per context and round.

use super::library::{Choice, PolicyLibrary};
use crate::error::Result;

impl PolicyLibrary<'_> {
    /// Leaves out the policies that no state of these contexts, given as coefficients, needs; returns how many.
    pub fn prune(&mut self, contexts: &[Vec<f64>]) -> Result<usize> {
        // Without contexts there is nothing to judge by.
        if contexts.is_empty() || self.known().is_empty() {
            return Ok(0);
        }
        let whole: Vec<Vec<Choice>> = contexts.iter().map(|c| self.improve(c)).collect::<Result<_>>()?;
        let n_policies = self.known().n_policies();
        let mut keep = vec![false; n_policies];
        for (coefficients, choices) in contexts.iter().zip(&whole) {
            let tie = self.tie(coefficients);
            for (state, choice) in choices.iter().enumerate() {
                let worth = self.continuations(coefficients, state, choice.action);
                let enough = worth.iter().copied().fold(f64::NEG_INFINITY, f64::max) - tie;
                if !(0..n_policies).any(|j| keep[j] && worth[j] >= enough) {
                    let first = (0..n_policies).find(|&j| worth[j] >= enough).unwrap_or(choice.policy);
                    keep[first] = true;
                }
            }
        }
        for _ in 0..n_policies {
            let mut settled = true;
            for (coefficients, choices) in contexts.iter().zip(&whole) {
                let tie = self.tie(coefficients);
                for (state, choice) in choices.iter().enumerate() {
                    if self.choose(coefficients, state, tie, |j| keep[j]).action != choice.action {
                        settled = false;
                        keep[choice.policy] = true;
                        keep[self.choose(coefficients, state, 0.0, |_| true).policy] = true;
                    }
                }
            }
            if settled {
                break;
            }
        }
        let dropped = keep.iter().filter(|kept| !**kept).count();
        self.retain(&keep);
        Ok(dropped)
    }
}
