//! What is believed of a row before anything was seen: a Dirichlet distribution with a mean and a strength.

use super::counts::TransitionCounts;
use crate::error::{Error, LEAST_STRENGTH, Result};
use crate::model::{Kernel, StateId};
use std::borrow::Cow;
use std::sync::Arc;

/// Dirichlet(1 + α p₀) over the successors of each pair, whose most probable row is
/// (n(s, a, s') + α p₀(s')) / (n(s, a) + α): the prior counts as α observations of p₀.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// α, not negative. Zero is plain maximum likelihood.
    pub strength: f64,
    /// p₀.
    pub mean: PriorMean,
    /// What becomes of pairs never seen at α = 0; with α above zero they follow p₀.
    pub unseen: Unseen,
}

/// p₀, the row that a pair is drawn to.
#[derive(Debug, Clone, PartialEq)]
pub enum PriorMean {
    /// Uniform over the successors that were seen of the state, after whichever action; the state itself where none was.
    SeenFromState,
    /// The row of a kernel over the same pairs: a simulator, or the pool for a part of the data.
    Kernel(Arc<Kernel>),
    /// The state itself: what was not seen changes nothing.
    Stay,
    /// A state of the model that stands for *unknown*, and that nothing leaves. A planner that dislikes it keeps to what
    /// was seen.
    Unknown(StateId),
}

/// What becomes of pairs that nothing is known about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unseen {
    /// They are refused, by name.
    #[default]
    Refused,
    /// They follow p₀.
    PriorMean,
}

impl Default for Prior {
    /// One observation's worth of the successors seen from the state.
    fn default() -> Self {
        Self { strength: 1.0, mean: PriorMean::SeenFromState, unseen: Unseen::Refused }
    }
}

impl Prior {
    /// α observations' worth of this mean.
    pub fn new(strength: f64, mean: PriorMean) -> Self {
        Self { strength, mean, unseen: Unseen::Refused }
    }

    /// Refuses strengths below zero, kernels of other models and unknown states that do not exist or were left.
    pub(super) fn check(&self, counts: &TransitionCounts) -> Result<()> {
        check_strength("prior strength", self.strength)?;
        let pairs = counts.pairs();
        match &self.mean {
            PriorMean::SeenFromState | PriorMean::Stay => Ok(()),
            PriorMean::Kernel(kernel) if kernel.pairs() == pairs => Ok(()),
            PriorMean::Kernel(_) => {
                let reason = "the prior's states, actions or admissible pairs differ from those counted over".into();
                Err(Error::IncompatibleKernels { kernel: 0, reason })
            }
            PriorMean::Unknown(unknown) if unknown.index() >= pairs.n_states() => {
                Err(Error::shape("unknown state", format!("below {}", pairs.n_states()), unknown.0))
            }
            PriorMean::Unknown(unknown) => {
                let state = unknown.index();
                let left =
                    |pair: usize| counts.successors(pair).find(|&(next, _)| next != state).map(|(s, _)| (pair, s));
                match pairs.of_state(state).find_map(left) {
                    Some((pair, next)) => {
                        Err(Error::UnknownStateLeft { state, action: pairs.action(pair).index(), next })
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// p₀ of the pairs of a state.
    pub(super) fn of_state(&self, counts: &TransitionCounts, state: usize) -> StateMean<'_> {
        let certain = |state: u32| StateMean::Same(vec![(state, 1.0)]);
        match &self.mean {
            PriorMean::Kernel(kernel) => StateMean::Kernel(kernel),
            PriorMean::Stay => certain(state as u32),
            PriorMean::Unknown(unknown) => certain(unknown.0),
            PriorMean::SeenFromState => {
                let mut seen: Vec<u32> =
                    counts.pairs().of_state(state).flat_map(|pair| counts.row(pair)).map(|entry| entry.0).collect();
                seen.sort_unstable();
                seen.dedup();
                let share = 1.0 / seen.len() as f64;
                if seen.is_empty() {
                    certain(state as u32)
                } else {
                    StateMean::Same(seen.into_iter().map(|next| (next, share)).collect())
                }
            }
        }
    }
}

/// p₀ of the pairs of one state.
pub(super) enum StateMean<'k> {
    /// One row for every action.
    Same(Vec<(u32, f64)>),
    /// A row each.
    Kernel(&'k Kernel),
}

impl StateMean<'_> {
    /// Successors ascending.
    pub(super) fn of(&self, pair: usize) -> Cow<'_, [(u32, f64)]> {
        match self {
            StateMean::Same(row) => Cow::Borrowed(row),
            StateMean::Kernel(kernel) => {
                Cow::Owned(kernel.successors(pair).map(|(next, p)| (next as u32, p)).collect())
            }
        }
    }
}

/// Refuses what is no number of observations.
pub(super) fn check_strength(name: &'static str, value: f64) -> Result<()> {
    if value == 0.0 || (value >= LEAST_STRENGTH && value.is_finite()) {
        return Ok(());
    }
    let reason = "expected a number of observations: finite, and 0 or at least 1e-200";
    Err(Error::InvalidSetting { name, value: value.to_string(), reason })
}
