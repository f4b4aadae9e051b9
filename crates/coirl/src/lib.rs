//! Inverse reinforcement learning in contextual Markov decision processes.
pub mod artifact;
pub mod demos;
pub mod domains;
mod error;
pub mod evaluate;
pub mod mapping;
pub mod model;
pub mod plan;
mod random;

pub use error::{Error, Result};
