//! Mixed policies: one of several rewards is drawn at time 0 and acted on from then on, as apprenticeship learning returns them.
//! Feature expectations of the mixture are the mixture of the feature expectations.

use super::behaviour::{Acting, ContextualPolicy};
use crate::error::{Error, Result, check_length};
use crate::mapping::{LinearMapping, RewardMapping};
use crate::model::{Cmdp, Context};

/// How far the shares of a mixture may be from one.
const SHARE_TOLERANCE: f64 = 1e-9;

/// Mappings with the shares in which they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    shares: Vec<f64>,
    mappings: Vec<LinearMapping>,
}

impl Mixture {
    /// From as many shares as mappings of one shape; shares are not negative and sum to one.
    pub fn new(shares: Vec<f64>, mappings: Vec<LinearMapping>) -> Result<Self> {
        let Some(first) = mappings.first() else {
            return Err(Error::shape("mappings of a mixture", "at least 1", 0));
        };
        check_length("shares of a mixture", mappings.len(), shares.len())?;
        let shape = |mapping: &LinearMapping| (mapping.dimension(), mapping.n_features());
        if let Some(other) = mappings.iter().find(|mapping| shape(mapping) != shape(first)) {
            return Err(Error::shape(
                "mappings of a mixture",
                format!("{:?}", shape(first)),
                format!("{:?}", shape(other)),
            ));
        }
        let sum: f64 = shares.iter().sum();
        if shares.iter().any(|share| !(*share >= 0.0)) || (sum - 1.0).abs() > SHARE_TOLERANCE {
            return Err(Error::shape("shares of a mixture", "not negative, with sum 1", format!("sum {sum}")));
        }
        Ok(Self { shares, mappings })
    }

    /// The shares.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The mappings, in the order of the shares.
    pub fn mappings(&self) -> &[LinearMapping] {
        &self.mappings
    }
}

impl ContextualPolicy for Mixture {
    fn acting(&self, _model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        let drawn = self.mappings.iter().zip(&self.shares).filter(|entry| *entry.1 > 0.0);
        let rewards = drawn.map(|(mapping, share)| Ok((*share, mapping.weights_of_all(contexts)?)));
        Ok(Acting::Planning(rewards.collect::<Result<_>>()?))
    }
}
