//! From observations to dynamics, whichever way they depend on the context.

use super::clusters::{Centres, by_cluster};
use super::held_out::{LogLikelihood, log_likelihood};
use super::likelihood::maximum_likelihood;
use super::mixture::{ExpectationMaximisation, Maximised, by_mixture};
use super::observations::Observations;
use super::prior::Prior;
use super::support::Support;
use crate::error::Result;
use crate::model::{Context, Dynamics};
use std::borrow::Cow;

/// How the dynamics may depend on the context.
#[derive(Debug, Clone, PartialEq)]
pub enum Structure {
    /// Not at all: one kernel.
    Pooled,
    /// One kernel per cluster of contexts.
    Clusters {
        /// Where the clusters are.
        centres: Centres,
        /// β: with the weight of how many observations a cluster is drawn to the pool.
        shrinkage: f64,
    },
    /// P_c = Σ cᵢ Pᵢ for contexts on the simplex.
    Mixture(ExpectationMaximisation),
}

/// Learned dynamics with what they rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// P̂.
    pub dynamics: Dynamics,
    /// How often each pair was seen, in whatever context.
    pub support: Support,
    /// How often each pair was seen in each cluster or base kernel; empty for one kernel.
    parts: Vec<Support>,
    /// Of the transitions learned from.
    pub log_likelihood: LogLikelihood,
    /// How the maximisation went, for a mixture.
    pub maximised: Option<Maximised>,
}

impl Learned {
    /// What the kernel of a context rests on: the observations of its cluster, or for a mixture those of the base kernels
    /// weighted as the context weights them.
    pub fn support_of(&self, context: &Context) -> Result<Cow<'_, Support>> {
        match &self.dynamics {
            Dynamics::Shared(_) => Ok(Cow::Borrowed(&self.support)),
            Dynamics::Clusters(clusters) => Ok(Cow::Borrowed(&self.parts[clusters.assign(context)?])),
            Dynamics::Mixture(mixture) => {
                let weights = mixture.weights(context)?;
                Ok(Cow::Owned(Support::weighted(self.parts.iter().zip(weights), self.support.pairs())))
            }
        }
    }
}

/// Learns the dynamics. The prior is that of the pool for clusters, and that of every base kernel for a mixture.
pub fn estimate(observations: &Observations, structure: &Structure, prior: &Prior) -> Result<Learned> {
    let pooled = observations.pooled();
    let (dynamics, parts, maximised) = match structure {
        Structure::Pooled => (Dynamics::Shared(maximum_likelihood(&pooled, prior)?.kernel), Vec::new(), None),
        Structure::Clusters { centres, shrinkage } => {
            let pool = maximum_likelihood(&pooled, prior)?;
            let (clusters, learned) = by_cluster(observations, centres, &pool.kernel, *shrinkage)?;
            (Dynamics::Clusters(clusters), learned.into_iter().map(|learned| learned.support).collect(), None)
        }
        Structure::Mixture(settings) => {
            let (mixture, parts, maximised) = by_mixture(observations, &pooled, prior, *settings)?;
            (Dynamics::Mixture(mixture), parts, Some(maximised))
        }
    };
    let log_likelihood = log_likelihood(&dynamics, observations)?;
    Ok(Learned { dynamics, support: pooled.support(), parts, log_likelihood, maximised })
}
