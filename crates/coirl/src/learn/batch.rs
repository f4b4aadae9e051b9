//! Which demonstrations a step looks at.

use super::settings::check_count;
use crate::error::{Result, check_room};
use crate::random::stream;
use rand::RngExt;
use rand::seq::SliceRandom;

/// How demonstrations are picked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Batch {
    /// One per step, in the order given, again from the start after the last.
    #[default]
    InOrder,
    /// So many per step, drawn afresh each time; one may be drawn twice.
    WithReplacement {
        /// Demonstrations per step.
        size: usize,
    },
    /// So many per step from a shuffled pass over all of them, then a new pass.
    WithoutReplacement {
        /// Demonstrations per step.
        size: usize,
    },
    /// All of them at every step.
    Full,
}

impl Batch {
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Batch::WithReplacement { size } => {
                check_count("batch size", size)?;
                check_room("batch size", &[size])
            }
            // A pass has no more than there are.
            Batch::WithoutReplacement { size } => check_count("batch size", size),
            Batch::InOrder | Batch::Full => Ok(()),
        }
    }

    /// The demonstrations of a step (from 1), a function of seed and step alone.
    pub(crate) fn indices(self, n: usize, step: u64, seed: u64) -> Vec<usize> {
        let t = step - 1;
        match self {
            Batch::InOrder => vec![(t % n as u64) as usize],
            Batch::Full => (0..n).collect(),
            Batch::WithReplacement { size } => {
                let mut rng = stream(seed, "mini-batch", step);
                (0..size).map(|_| rng.random_range(0..n)).collect()
            }
            Batch::WithoutReplacement { size } => {
                let per_pass = n.div_ceil(size) as u64;
                let mut order: Vec<usize> = (0..n).collect();
                order.shuffle(&mut stream(seed, "pass", t / per_pass));
                let first = (t % per_pass) as usize * size;
                order[first..(first + size).min(n)].to_vec()
            }
        }
    }

    /// Steps by default: one pass in order, or enough of the others to get somewhere.
    pub(super) fn default_steps(self, n: usize) -> u64 {
        self.steps_per_pass(n).max(if self == Batch::InOrder { 1 } else { 100 })
    }

    /// How many of n demonstrations the first `steps` steps have looked at, at most.
    pub(crate) fn seen(self, n: usize, steps: u64) -> u64 {
        let size = match self {
            Batch::InOrder => 1,
            Batch::Full => n,
            Batch::WithReplacement { size } | Batch::WithoutReplacement { size } => size,
        };
        steps.saturating_mul(size as u64).min(n as u64)
    }

    /// Steps in one pass over n demonstrations.
    pub fn steps_per_pass(self, n: usize) -> u64 {
        match self {
            Batch::InOrder => n as u64,
            Batch::Full => 1,
            Batch::WithReplacement { size } | Batch::WithoutReplacement { size } => n.div_ceil(size.max(1)) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_without_replacement_meets_everyone_once() {
        let batch = Batch::WithoutReplacement { size: 3 };
        for pass in 0..3 {
            let mut seen: Vec<usize> = (1..=4).flat_map(|t| batch.indices(10, 4 * pass + t, 7)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(batch.indices(10, 1, 7), batch.indices(10, 5, 7));
    }
}
