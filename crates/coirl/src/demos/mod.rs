//! Demonstrations: what was seen of somebody acting.

mod trajectory;

pub use trajectory::Trajectory;
