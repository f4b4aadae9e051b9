//! Reward mappings: from a context to the weights of the reward.

mod linear;

pub use linear::LinearMapping;
