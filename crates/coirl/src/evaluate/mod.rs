//! How good a mapping is: what it plans for the contexts at hand.

mod contexts;

pub use contexts::plan_contexts;
