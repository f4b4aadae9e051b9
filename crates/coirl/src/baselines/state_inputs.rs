//! What a cloned policy is told about a state: its features, and principal components of its dynamics.
//!
//! These are the inputs of the paper's remark on contextual cloning, but for the context. Features of states and actions are averaged
//! over the actions in question. Where the dynamics depend on the context, the components are those of the kernel of the
//! mean training context. Inputs are standardised by their mean and deviation over the states of the decisions that are learned
//! from; an input that never varied there is only shifted.

use super::principal_components::PrincipalComponents;
use crate::demos::DemonstratedActions;
use crate::error::{Error, Result};
use crate::learn::Problem;
use crate::network::Standardisation;

/// Components by default: as many as explain this share of the variance.
const EXPLAINED: f64 = 0.95;
/// State inputs beyond this many numbers are refused.
const MAX_STATE_INPUTS: usize = 1 << 28;

/// The inputs of every state.
#[derive(Debug)]
pub(super) struct StateInputs {
    /// Numbers per state.
    pub(super) width: usize,
    /// s̃ of every state, row by row.
    pub(super) values: Vec<f64>,
}

impl StateInputs {
    /// With so many components of the dynamics; by default as many as explain 95 % of their variance, but `most` at most.
    pub(super) fn new(
        problem: &Problem<'_>,
        decisions: &DemonstratedActions,
        components: Option<usize>,
        most: usize,
        masked: bool,
    ) -> Result<Self> {
        let (model, d) = (problem.model(), problem.context(0).values().len());
        let mut mean = vec![0.0; d];
        for row in problem.data().context_values().chunks_exact(d) {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / problem.len() as f64);
        }
        let typical = model.mdp(&model.context_space().context(mean)?)?;
        let (most, share) = components.map_or((most, EXPLAINED), |n| (n, 1.0));
        let components = PrincipalComponents::of_dynamics(typical.kernel(), most, share)?;
        let (k, width) = (model.n_features(), model.n_features() + components.len());
        let count = model.n_states().saturating_mul(width);
        if count > MAX_STATE_INPUTS {
            return Err(Error::TooLarge { what: "states × inputs of cloning", count, limit: MAX_STATE_INPUTS });
        }
        let mut raw = vec![0.0; count];
        for (s, row) in raw.chunks_exact_mut(width).enumerate() {
            let pairs = model.pairs().of_state(s).filter(|&pair| !masked || model.is_known(pair));
            let share = 1.0 / pairs.clone().count() as f64;
            pairs.for_each(|pair| model.features().add_scaled(s, pair, share, &mut row[..k]));
            row[k..].copy_from_slice(&components.scores[s * components.len()..(s + 1) * components.len()]);
        }
        let mut visits = vec![0.0; model.n_states()];
        for i in 0..problem.len() {
            let seen = decisions.of_demonstration(i);
            seen.iter().for_each(|&(pair, n)| visits[model.pairs().state(pair).index()] += n);
        }
        let standard = Standardisation::fitted(width, raw.chunks_exact(width).zip(visits));
        Ok(Self { width, values: raw.chunks_exact(width).flat_map(|row| standard.of(row)).collect() })
    }

    /// Those of a state.
    pub(super) fn of(&self, state: usize) -> &[f64] {
        &self.values[state * self.width..(state + 1) * self.width]
    }
}
