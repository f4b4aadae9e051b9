//! The bytes that identify a model: everything a result can depend on, names left out.

use super::cmdp::Cmdp;
use super::dynamics::Dynamics;
use super::features::Features;
use super::kernel::Layout;
use sha2::{Digest, Sha256};

/// SHA-256, in hexadecimal digits, of all the bytes that `feed` hands on.
pub fn sha256(feed: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
    let mut hasher = Sha256::new();
    feed(&mut |bytes| hasher.update(bytes));
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Cmdp {
    /// Hands every number of the model to `sink`, in a fixed order and form.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        match self.dynamics() {
            Dynamics::Shared(kernel) => {
                sink(b"shared");
                feed_layout(kernel.layout(), sink);
                feed_numbers(kernel.probabilities(), sink);
            }
            Dynamics::Mixture(mixture) => {
                sink(b"mixture");
                feed_layout(mixture.layout(), sink);
                feed_numbers(mixture.probabilities(), sink);
            }
            Dynamics::Clusters(clusters) => {
                sink(b"clusters");
                for (kernel, centroid) in clusters.kernels().iter().zip(clusters.centroids()) {
                    feed_layout(kernel.layout(), sink);
                    feed_numbers(kernel.probabilities(), sink);
                    feed_numbers(centroid, sink);
                }
            }
        }
        match self.features() {
            Features::State { values, .. } => feed_numbers(values, sink),
            Features::StateAction(rows) => {
                let (starts, features, values) = rows.parts();
                starts.iter().for_each(|start| sink(&(*start as u64).to_le_bytes()));
                features.iter().for_each(|feature| sink(&feature.to_le_bytes()));
                feed_numbers(values, sink);
            }
        }
        feed_numbers(self.initial(), sink);
        sink(self.criterion().name().as_bytes());
        feed_numbers(&[self.criterion().discount()], sink);
        if let super::Criterion::FiniteHorizon { steps, .. } = self.criterion() {
            sink(&(steps as u64).to_le_bytes());
        }
        if let Some(known) = self.known_pairs() {
            sink(b"known");
            known.iter().for_each(|&known| sink(&[u8::from(known)]));
        }
    }
}

fn feed_layout(layout: &Layout, sink: &mut dyn FnMut(&[u8])) {
    let shape = [layout.pairs.n_states(), layout.pairs.n_actions(), layout.pairs.len(), layout.next.len()];
    shape.iter().for_each(|n| sink(&(*n as u64).to_le_bytes()));
    layout.pairs.mask().iter().for_each(|&admissible| sink(&[u8::from(admissible)]));
    layout.pair_row.iter().chain(&layout.next).for_each(|index| sink(&index.to_le_bytes()));
    layout.row_start.iter().for_each(|start| sink(&(*start as u64).to_le_bytes()));
}

/// Numbers with their count, so that two lists cannot be taken for one.
pub(crate) fn feed_numbers(numbers: &[f64], sink: &mut dyn FnMut(&[u8])) {
    sink(&(numbers.len() as u64).to_le_bytes());
    numbers.iter().for_each(|x| sink(&x.to_le_bytes()));
}
