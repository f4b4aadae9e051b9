//! Reward mappings: from a context to the weights of the reward.

mod linear;
mod threshold;

pub use linear::LinearMapping;
pub use threshold::ThresholdMapping;
