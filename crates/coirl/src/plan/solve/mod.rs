//! The iterations: one file per way to reach the optimal values, each with its stopping rule.

pub(in crate::plan) mod absorption;
pub(in crate::plan) mod automatic;
pub(in crate::plan) mod average;
pub(in crate::plan) mod blocks;
pub(in crate::plan) mod exact;
pub(in crate::plan) mod finite_horizon;
pub(in crate::plan) mod iterate;
pub(in crate::plan) mod many;
mod one_pass;
mod prioritised;
pub(in crate::plan) mod residual;
mod slow;
pub(in crate::plan) mod soft;
pub(in crate::plan) mod soft_many;
mod soft_system;
