//! Multi-layer networks: of reward mappings and of cloned policies.
//!
//! ```text
//! x₀ = (input − shift) / scale,    x_l = leaky(norm(A_l x_{l−1} + b_l)),    output = A_L x_{L−1} + b_L, of unit length where asked for
//! ```
//!
//! Activations lie feature by feature, the samples of a batch side by side, so that a layer is one matrix product, its rows can be
//! shared among threads without changing a sum, and batch normalisation reads what lies together. Products are faer's; a step costs
//! three of them per layer. Parameters are single precision.

mod architecture;
mod pass;
mod perceptron;
mod standardisation;

pub use architecture::{Architecture, Layer};
pub(crate) use pass::{LEAK, Pass};
pub use perceptron::Network;
pub use standardisation::Standardisation;
