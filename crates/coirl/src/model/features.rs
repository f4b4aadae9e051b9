//! φ: what the reward may depend on, per state (dense) or per state and action (sparse rows).

use super::kernel::check_row_starts;
use super::pairs::Pairs;
use crate::error::{Error, Result, check_finite, check_length};

/// Feature vectors of the states, or of the admissible (state, action) pairs.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// φ(s), one dense row of `n_features` numbers per state.
    State {
        /// Numbers per row.
        n_features: usize,
        /// Rows in state order.
        values: Vec<f64>,
    },
    /// φ(s, a), one sparse row per admissible pair.
    StateAction(SparseRows),
}

/// Rows of a few non-zero numbers each.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    n_features: usize,
    row_start: Vec<usize>,
    feature: Vec<u32>,
    value: Vec<f64>,
}

/// R = w·φ: one number per state, or per admissible pair.
#[derive(Debug, Clone, PartialEq)]
pub enum Reward {
    /// R(s), collected in every visited state.
    State(Vec<f64>),
    /// R(s, a), in pair order.
    Pair(Vec<f64>),
}

impl Features {
    /// Dense rows φ(s), row-major `[n_states, n_features]`.
    pub fn per_state(n_states: usize, n_features: usize, values: Vec<f64>) -> Result<Self> {
        if n_features == 0 || values.len() != n_states * n_features {
            let found = format!("{} numbers for {n_features} features", values.len());
            return Err(Error::shape("features", format!("[{n_states}, at least 1]"), found));
        }
        check_finite("features", &values)?;
        Ok(Features::State { n_features, values })
    }

    /// φ(s, a) from sparse rows in pair order.
    pub fn per_pair(pairs: &Pairs, rows: SparseRows) -> Result<Self> {
        check_length("state-action feature rows", pairs.len(), rows.n_rows())?;
        Ok(Features::StateAction(rows))
    }

    /// φ(s, a) = e_s ⊕ e_a: an indicator of the state beside one of the action, two numbers per pair.
    pub fn indicators(pairs: &Pairs) -> Result<Self> {
        let n_features = pairs.n_states() + pairs.n_actions();
        let mut feature = Vec::with_capacity(2 * pairs.len());
        for state in 0..pairs.n_states() {
            for pair in pairs.of_state(state) {
                feature.push(state as u32);
                feature.push((pairs.n_states() + pairs.action(pair).index()) as u32);
            }
        }
        let row_start = (0..=pairs.len()).map(|pair| 2 * pair).collect();
        let value = vec![1.0; feature.len()];
        Ok(Features::StateAction(SparseRows { n_features, row_start, feature, value }))
    }

    /// Length k of a feature vector.
    pub fn n_features(&self) -> usize {
        match self {
            Features::State { n_features, .. } => *n_features,
            Features::StateAction(rows) => rows.n_features,
        }
    }

    /// w·φ for every state or pair.
    pub fn reward(&self, weights: &[f64]) -> Result<Reward> {
        check_length("weights", self.n_features(), weights.len())?;
        check_finite("weights", weights)?;
        let reward = match self {
            Features::State { n_features, values } => Reward::State(
                values.chunks_exact(*n_features).map(|row| row.iter().zip(weights).map(|(x, w)| x * w).sum()).collect(),
            ),
            Features::StateAction(rows) => {
                Reward::Pair((0..rows.n_rows()).map(|pair| rows.row(pair).map(|(j, x)| x * weights[j]).sum()).collect())
            }
        };
        reward.check()?;
        Ok(reward)
    }

    /// Adds `scale · φ` of a pair (or of its state) to `out`.
    pub(crate) fn add_scaled(&self, state: usize, pair: usize, scale: f64, out: &mut [f64]) {
        match self {
            Features::State { n_features, values } => {
                let row = &values[state * n_features..(state + 1) * n_features];
                out.iter_mut().zip(row).for_each(|(sum, x)| *sum += scale * x);
            }
            Features::StateAction(rows) => rows.row(pair).for_each(|(j, x)| out[j] += scale * x),
        }
    }

    /// The largest |φ_j| over all states or pairs and features.
    pub fn max_abs(&self) -> f64 {
        let values = match self {
            Features::State { values, .. } => values,
            Features::StateAction(rows) => &rows.value,
        };
        values.iter().fold(0.0, |max, x| x.abs().max(max))
    }

    /// The largest size of each feature.
    pub(crate) fn largest(&self) -> Vec<f64> {
        let mut largest = vec![0.0_f64; self.n_features()];
        match self {
            Features::State { values, .. } => {
                let width = largest.len().max(1);
                values.iter().enumerate().for_each(|(at, x)| largest[at % width] = largest[at % width].max(x.abs()));
            }
            Features::StateAction(rows) => {
                rows.feature
                    .iter()
                    .zip(&rows.value)
                    .for_each(|(&j, x)| largest[j as usize] = largest[j as usize].max(x.abs()));
            }
        }
        largest
    }

    /// The first non-zero feature of a state (under any of its actions), with its value.
    pub(crate) fn first_non_zero(&self, pairs: &Pairs, state: usize) -> Option<(usize, f64)> {
        match self {
            Features::State { n_features, values } => {
                let row = &values[state * n_features..(state + 1) * n_features];
                row.iter().copied().enumerate().find(|entry| entry.1 != 0.0)
            }
            Features::StateAction(rows) => {
                pairs.of_state(state).find_map(|pair| rows.row(pair).find(|entry| entry.1 != 0.0))
            }
        }
    }

    pub(crate) fn check_rows(&self, pairs: &Pairs) -> Result<()> {
        match self {
            Features::State { n_features, values } => {
                check_length("features (rows)", pairs.n_states(), values.len() / n_features)
            }
            Features::StateAction(rows) => check_length("features (state-action rows)", pairs.len(), rows.n_rows()),
        }
    }
}

impl SparseRows {
    /// From compressed rows; `feature` entries must be below `n_features`, values finite.
    pub fn new(n_features: usize, row_start: Vec<usize>, feature: Vec<u32>, value: Vec<f64>) -> Result<Self> {
        if n_features == 0 || row_start.is_empty() {
            return Err(Error::shape("features", "at least one feature and one row", n_features));
        }
        check_row_starts("features_indptr", &row_start, row_start.len() - 1, feature.len())?;
        check_length("features_data", feature.len(), value.len())?;
        if let Some(bad) = feature.iter().find(|&&j| j as usize >= n_features) {
            return Err(Error::shape("features_indices", format!("indices below {n_features}"), bad));
        }
        check_finite("features_data", &value)?;
        Ok(Self { n_features, row_start, feature, value })
    }

    /// No rows yet.
    pub(super) fn empty(n_features: usize) -> Self {
        Self { n_features, row_start: vec![0], feature: Vec::new(), value: Vec::new() }
    }

    /// One row more.
    pub(super) fn push(&mut self, row: impl Iterator<Item = (usize, f64)>) {
        for (feature, value) in row {
            self.feature.push(feature as u32);
            self.value.push(value);
        }
        self.row_start.push(self.feature.len());
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_start.len() - 1
    }

    /// Length of a row when written out.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The stored entries of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let entries = self.row_start[row]..self.row_start[row + 1];
        self.feature[entries.clone()].iter().zip(&self.value[entries]).map(|(&j, &x)| (j as usize, x))
    }

    /// Row starts, feature indices and values, as compressed rows hold them.
    pub fn parts(&self) -> (&[usize], &[u32], &[f64]) {
        (&self.row_start, &self.feature, &self.value)
    }
}

impl Reward {
    /// A reward per state, refused if not finite.
    pub fn per_state(values: Vec<f64>) -> Result<Self> {
        let reward = Reward::State(values);
        reward.check()?;
        Ok(reward)
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Reward::State(values) => check_finite("reward", values),
            Reward::Pair(values) => check_finite("reward", values),
        }
    }

    /// The reward of a pair.
    pub fn at(&self, state: usize, pair: usize) -> f64 {
        match self {
            Reward::State(values) => values[state],
            Reward::Pair(values) => values[pair],
        }
    }

    pub(crate) fn check_shape(&self, pairs: &Pairs) -> Result<()> {
        match self {
            Reward::State(values) => check_length("reward per state", pairs.n_states(), values.len()),
            Reward::Pair(values) => check_length("reward per pair", pairs.len(), values.len()),
        }
    }

    /// The largest |R|.
    pub fn max_abs(&self) -> f64 {
        let (Reward::State(values) | Reward::Pair(values)) = self;
        values.iter().fold(0.0, |max, x| x.abs().max(max))
    }
}
