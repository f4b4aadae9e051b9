//! One kernel per cluster of contexts,
//!
//! ```text
//! P̂_g(s' | s, a) = (n_g(s, a, s') + β P̂(s' | s, a)) / (n_g(s, a) + β),
//! ```
//!
//! drawn to the pooled estimate P̂ with the weight of β observations: a cluster keeps its own ways where it was seen and
//! follows the pool where it was not. β → ∞ is the pool, β = 0 leaves the clusters to themselves; pairs that a cluster
//! never saw follow the pool even then. A context belongs to the nearest centre.

use super::kmeans;
use super::likelihood::{LearnedKernel, maximum_likelihood};
use super::observations::Observations;
use super::prior::{Prior, PriorMean, Unseen, check_strength};
use crate::error::{Result, check_length};
use crate::model::{Clusters, Kernel};
use std::sync::Arc;

/// Where the clusters are.
#[derive(Debug, Clone, PartialEq)]
pub enum Centres {
    /// At these points.
    Given(Vec<Vec<f64>>),
    /// As many as this, found by k-means among the distinct contexts.
    Found {
        /// How many.
        number: usize,
        /// Seed of the first guess.
        seed: u64,
    },
}

impl Centres {
    fn resolve(&self, observations: &Observations) -> Result<Vec<Vec<f64>>> {
        match self {
            Centres::Given(centres) => {
                if let (Some(context), Some(centre)) = (observations.contexts().first(), centres.first()) {
                    check_length("centre of a cluster", context.values().len(), centre.len())?;
                }
                Ok(centres.clone())
            }
            Centres::Found { number, seed } => kmeans::centres(observations.contexts(), *number, *seed),
        }
    }
}

/// The kernels of the clusters and what each rests on.
pub(super) fn by_cluster(
    observations: &Observations,
    centres: &Centres,
    pooled: &Kernel,
    shrinkage: f64,
) -> Result<(Clusters, Vec<LearnedKernel>)> {
    check_strength("shrinkage", shrinkage)?;
    let centres = centres.resolve(observations)?;
    // The assignment is the model's own, asked before the kernels are known.
    let clusters = Clusters::new(vec![pooled.clone(); centres.len()], centres)?;
    let assigned = observations.contexts().iter().map(|c| clusters.assign(c)).collect::<Result<Vec<_>>>()?;
    let mean = PriorMean::Kernel(Arc::new(pooled.clone()));
    let prior = Prior { strength: shrinkage, mean, unseen: Unseen::PriorMean };
    let counts = observations.by_group(&assigned, clusters.centroids().len());
    let learned: Vec<LearnedKernel> =
        counts.iter().map(|counts| maximum_likelihood(counts, &prior)).collect::<Result<_>>()?;
    let kernels = learned.iter().map(|learned| learned.kernel.clone()).collect();
    Ok((Clusters::new(kernels, clusters.centroids().to_vec())?, learned))
}
