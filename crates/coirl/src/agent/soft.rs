//! Agents of maximum entropy: they act with the soft policy of a reward rather than with the best one.

use super::KnownContexts;
use super::behaviour::{Acting, ContextualPolicy, soft_policies};
use crate::error::{Error, Result, check_finite};
use crate::mapping::{LinearMapping, RewardMapping};
use crate::model::{Cmdp, Context};

/// A mapping with the temperature of the soft policies that it is acted on with.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftMapping {
    mapping: LinearMapping,
    temperature: f64,
}

impl SoftMapping {
    /// The temperature must be above zero.
    pub fn new(mapping: LinearMapping, temperature: f64) -> Result<Self> {
        check_temperature(temperature)?;
        Ok(Self { mapping, temperature })
    }

    /// f.
    pub fn mapping(&self) -> &LinearMapping {
        &self.mapping
    }

    /// τ.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }
}

/// Reward weights of the contexts that were seen; a new context gets those of the nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestWeights {
    contexts: KnownContexts,
    n_features: usize,
    weights: Vec<f64>,
    temperature: Option<f64>,
}

impl NearestWeights {
    /// From a row of weights per context. Without a temperature the agent plans for the weights; with one it follows their
    /// soft policy.
    pub fn new(contexts: KnownContexts, weights: Vec<f64>, temperature: Option<f64>) -> Result<Self> {
        if weights.is_empty() || !weights.len().is_multiple_of(contexts.len()) {
            let found = format!("{} numbers for {} contexts", weights.len(), contexts.len());
            return Err(Error::shape("weights of contexts", "a row per context", found));
        }
        check_finite("weights of contexts", &weights)?;
        temperature.map_or(Ok(()), check_temperature)?;
        Ok(Self { n_features: weights.len() / contexts.len(), contexts, weights, temperature })
    }

    /// The contexts that have weights of their own.
    pub fn contexts(&self) -> &KnownContexts {
        &self.contexts
    }

    /// Number k of reward weights.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Every row of weights, in the order of the contexts.
    pub fn all_weights(&self) -> &[f64] {
        &self.weights
    }

    /// τ, where the agent follows soft policies.
    pub fn temperature(&self) -> Option<f64> {
        self.temperature
    }

    /// The weights for a context.
    pub fn weights(&self, context: &Context) -> Result<&[f64]> {
        let nearest = self.contexts.nearest(context)?;
        Ok(&self.weights[nearest * self.n_features..(nearest + 1) * self.n_features])
    }
}

impl ContextualPolicy for SoftMapping {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        soft_policies(model, contexts, |context| Ok(self.mapping.weights(context)?.into()), self.temperature)
    }

    fn reward(&self) -> Option<&dyn RewardMapping> {
        Some(&self.mapping)
    }
}

impl ContextualPolicy for NearestWeights {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        if let Some(temperature) = self.temperature {
            return soft_policies(model, contexts, |context| Ok(self.weights(context)?.into()), temperature);
        }
        let rows: Vec<&[f64]> = contexts.iter().map(|context| self.weights(context)).collect::<Result<_>>()?;
        Ok(Acting::Planning(vec![(1.0, rows.concat())]))
    }

    fn keeps_contexts(&self) -> bool {
        true
    }
}

fn check_temperature(temperature: f64) -> Result<()> {
    if temperature > 0.0 && temperature.is_finite() {
        return Ok(());
    }
    let reason = "expected a number above 0";
    Err(Error::InvalidSetting { name: "temperature", value: temperature.to_string(), reason })
}
