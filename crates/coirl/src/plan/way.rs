//! Which way planning went.

use serde::Serialize;
use std::fmt;

/// Which way planning went, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Way {
    /// The method that was asked for, or the only one that the criterion has.
    Asked,
    /// Side by side with other rewards: backups converge quickly for all of them.
    Lanes,
    /// Backups: each took off a good share of the residual.
    Backups,
    /// Policies evaluated by Krylov steps between backups, because backups alone took off little of the residual.
    KrylovSteps,
    /// One pass over the states, each after those it leads to, because no state is ever returned to.
    OnePass,
    /// Sweeps against the flow of the policy, because one step moves little and Krylov steps got nowhere.
    AgainstTheFlow,
    /// Policies evaluated outright by sparse factors, because one step moves little and the factors are small.
    Policies,
}

impl Way {
    /// Whether the model was seen to mix slowly: neither sweeps nor plain Krylov steps are quick on it.
    pub(in crate::plan) fn is_slow(self) -> bool {
        matches!(self, Way::AgainstTheFlow | Way::Policies)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Asked => "the method asked for",
            Way::Lanes => "side by side with other rewards (backups converge quickly)",
            Way::Backups => "backups (they converge quickly)",
            Way::KrylovSteps => "Krylov steps between backups (backups alone converge slowly)",
            Way::OnePass => "one pass against the arrows (no state is ever returned to)",
            Way::AgainstTheFlow => "sweeps against the flow (one step moves little)",
            Way::Policies => "policy iteration with sparse factors (one step moves little)",
        })
    }
}
