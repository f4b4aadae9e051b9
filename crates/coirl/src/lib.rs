//! Inverse reinforcement learning in contextual Markov decision processes.
pub mod artifact;
mod error;
pub mod model;
pub mod plan;

pub use error::{Error, Result};
