//! Experiments: which there are, running them, and what they leave behind.

mod shipped;

pub(crate) use shipped::{SHIPPED, shipped};
