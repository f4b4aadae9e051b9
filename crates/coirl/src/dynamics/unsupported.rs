//! How much of what a policy does stands on little data.

use super::Support;
use crate::error::{Error, Result};
use crate::model::Mdp;
use crate::plan::{Policy, evaluate};

/// Share of a policy's (discounted) visits that fall on pairs with fewer than `least` observations. The visits are those
/// in `mdp`, usually the learned one, from its start.
pub fn unsupported_share(mdp: &Mdp<'_>, policy: &Policy, support: &Support, least: f64) -> Result<f64> {
    if support.pairs().as_ref() != mdp.pairs() {
        return Err(Error::shape("support (pairs)", mdp.pairs().len(), support.pairs().len()));
    }
    let occupancy = evaluate::occupancy(mdp, policy)?;
    let visits = occupancy.of_pairs();
    let thin: f64 = support.thin(least).map(|pair| visits[pair]).sum();
    Ok(thin / visits.iter().sum::<f64>())
}
