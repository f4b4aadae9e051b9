//! A model over some of its pairs: what is left when people may take only these.

use super::cmdp::Cmdp;
use super::dynamics::{Clusters, Dynamics, Mixture};
use super::features::{Features, SparseRows};
use super::kernel::{Kernel, RowStore};
use super::pairs::Pairs;
use crate::error::{Error, Result, check_length};
use std::sync::Arc;

impl Cmdp {
    /// The model with only the pairs of `keep` (one flag per pair, in pair order). States, actions and their numbers stay, so that a
    /// policy of actions for one is a policy for the other; every state needs a pair.
    pub fn restricted(&self, keep: &[bool]) -> Result<Self> {
        check_length("pairs to keep", self.pairs().len(), keep.len())?;
        let pairs = Arc::new(kept_pairs(self.pairs(), keep)?);
        let kernel = |kernel: &Kernel| -> Result<Kernel> {
            let (layout, probabilities) = kept_rows(&pairs, keep, 1, |pair| kernel.row(kernel.row_of(pair)))?;
            Ok(Kernel::from_layout(Arc::new(layout), probabilities))
        };
        let dynamics = match self.dynamics() {
            Dynamics::Shared(shared) => Dynamics::Shared(kernel(shared)?),
            Dynamics::Mixture(mixture) => Dynamics::Mixture(mixture.restricted(&pairs, keep)?),
            Dynamics::Clusters(clusters) => {
                let kernels = clusters.kernels().iter().map(kernel).collect::<Result<_>>()?;
                Dynamics::Clusters(Clusters::new(kernels, clusters.centroids().to_vec())?)
            }
        };
        let features = match self.features() {
            Features::State { .. } => self.features().clone(),
            Features::StateAction(rows) => Features::StateAction(rows.restricted(keep)),
        };
        let known = self
            .known
            .as_ref()
            .map(|known| known.iter().zip(keep).filter(|(_, keep)| **keep).map(|(k, _)| *k).collect());
        Ok(self.with_parts(dynamics, features, known))
    }

    /// The model among its known pairs; nothing where all are known.
    pub fn among_known(&self) -> Result<Option<Self>> {
        match self.known_pairs() {
            Some(known) if known.contains(&false) => self.restricted(known).map(Some),
            _ => Ok(None),
        }
    }
}

fn kept_pairs(pairs: &Pairs, keep: &[bool]) -> Result<Pairs> {
    let mut mask = vec![false; pairs.n_states() * pairs.n_actions()];
    for state in 0..pairs.n_states() {
        for pair in pairs.of_state(state) {
            mask[state * pairs.n_actions() + pairs.action(pair).index()] = keep[pair];
        }
    }
    Pairs::from_mask(pairs.n_states(), pairs.n_actions(), &mask).map_err(|error| match error {
        Error::NoAdmissibleAction { state } => Error::NoKnownAction { state },
        other => other,
    })
}

/// The rows of the pairs that are kept, with `width` numbers per entry.
pub(super) fn kept_rows<'r>(
    pairs: &Arc<Pairs>,
    keep: &[bool],
    width: usize,
    row: impl Fn(usize) -> (&'r [u32], &'r [f64]),
) -> Result<(super::kernel::Layout, Vec<f64>)> {
    let mut rows = RowStore::new(pairs.clone(), width);
    for pair in (0..keep.len()).filter(|&pair| keep[pair]) {
        let (next, values) = row(pair);
        rows.push(next.iter().copied(), values.iter().copied());
    }
    rows.finish()
}

impl SparseRows {
    fn restricted(&self, keep: &[bool]) -> Self {
        let mut rows = Self::empty(self.n_features());
        (0..keep.len()).filter(|&pair| keep[pair]).for_each(|pair| rows.push(self.row(pair)));
        rows
    }
}

impl Mixture {
    fn restricted(&self, pairs: &Arc<Pairs>, keep: &[bool]) -> Result<Self> {
        let (layout, width) = (self.layout(), self.n_kernels());
        let (own, probabilities) = kept_rows(pairs, keep, width, |pair| {
            let row = layout.pair_row[pair] as usize;
            let entries = layout.row_start[row]..layout.row_start[row + 1];
            (&layout.next[entries.clone()], &self.probabilities()[entries.start * width..entries.end * width])
        })?;
        Self::from_parts(own, width, probabilities)
    }
}
