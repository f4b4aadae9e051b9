//! One planning problem as the inner loops see it: distinct rows, one reward each.

use crate::error::{Error, Result};
use crate::model::{Kernel, Mdp, Pairs, Reward};
use crate::plan::kernels::linear::sup_norm;
use crate::plan::kernels::sweep::Numbers;

/// A kernel with a reward and a discount.
#[derive(Debug)]
pub(crate) struct Problem<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) gamma: f64,
    pub(crate) reward: RowReward<'a>,
}

/// Rewards of rows. Pairs that share a row differ in their reward at most, so the best of them stands for the row.
#[derive(Debug)]
pub(crate) enum RowReward<'a> {
    /// The reward depends on the state only.
    State(&'a [f64]),
    /// The reward depends on the pair.
    Row {
        /// The best reward among the pairs of each row.
        best: Vec<f64>,
        /// The rewards of the pairs.
        pairs: &'a [f64],
    },
}

impl<'a> Problem<'a> {
    pub(crate) fn new(mdp: &'a Mdp<'_>, reward: &'a Reward) -> Result<Self> {
        reward.check_shape(mdp.pairs())?;
        reward.check()?;
        let kernel = mdp.kernel();
        let gamma = mdp.criterion().discount();
        let bound = reward.max_abs() / (1.0 - gamma).max(f64::MIN_POSITIVE);
        if gamma < 1.0 && bound > f64::MAX / 1e8 {
            return Err(Error::NotFinite { what: "value bound", index: 0, value: f64::INFINITY });
        }
        let reward = match reward {
            Reward::State(values) => RowReward::State(values),
            Reward::Pair(values) => {
                let mut best = vec![f64::NEG_INFINITY; kernel.n_rows()];
                for (pair, &r) in values.iter().enumerate() {
                    let row = kernel.row_of(pair);
                    best[row] = best[row].max(r);
                }
                RowReward::Row { best, pairs: values }
            }
        };
        Ok(Self { kernel, gamma, reward })
    }

    pub(crate) fn n_states(&self) -> usize {
        self.kernel.n_states()
    }

    pub(crate) fn pairs(&self) -> &Pairs {
        self.kernel.pairs()
    }

    /// What the inner loops read.
    pub(crate) fn numbers(&self) -> Numbers<'_, f64> {
        let (reward, reward_per_row) = match &self.reward {
            RowReward::State(reward) => (*reward, false),
            RowReward::Row { best, .. } => (&best[..], true),
        };
        let layout = self.kernel.layout();
        Numbers {
            state_rows: &layout.state_rows,
            row_start: &layout.row_start,
            next: &layout.next,
            p: self.kernel.probabilities(),
            gamma: self.gamma,
            reward,
            reward_per_row,
        }
    }

    /// The longest row.
    pub(crate) fn max_row_entries(&self) -> usize {
        self.kernel.layout().row_start.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }

    /// Where planning starts without a hint: one backup of the zero vector, as good as a sweep and free. States that are never
    /// left have their values at once, r / (1 − γ), and no longer hold up the others, which converge at the rate at which they are left.
    pub(crate) fn first_values(&self) -> Vec<f64> {
        let mut values = self.first_rewards();
        if self.gamma < 1.0 {
            self.kernel.absorbing().for_each(|s| values[s] /= 1.0 - self.gamma);
        }
        values
    }

    /// The best reward in every state.
    fn first_rewards(&self) -> Vec<f64> {
        match &self.reward {
            RowReward::State(reward) => reward.to_vec(),
            RowReward::Row { best, .. } => {
                let rows = &self.kernel.layout().state_rows;
                rows.windows(2)
                    .map(|w| best[w[0] as usize..w[1] as usize].iter().copied().fold(f64::MIN, f64::max))
                    .collect()
            }
        }
    }

    /// The rows of a policy given by its pairs.
    pub(crate) fn rows_of(&self, policy_pairs: &[u32]) -> Vec<u32> {
        policy_pairs.iter().map(|&pair| self.kernel.row_of(pair as usize) as u32).collect()
    }
}

impl RowReward<'_> {
    pub(crate) fn at(&self, state: usize, row: usize) -> f64 {
        match self {
            RowReward::State(reward) => reward[state],
            RowReward::Row { best, .. } => best[row],
        }
    }

    /// The reward of one pair.
    pub(crate) fn of_pair(&self, state: usize, pair: usize) -> f64 {
        match self {
            RowReward::State(reward) => reward[state],
            RowReward::Row { pairs, .. } => pairs[pair],
        }
    }

    pub(crate) fn max_abs(&self) -> f64 {
        let values = match self {
            RowReward::State(reward) => reward,
            RowReward::Row { pairs, .. } => pairs,
        };
        sup_norm(values)
    }
}
