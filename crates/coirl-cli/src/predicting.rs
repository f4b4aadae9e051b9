//! Acting in a new context: the contexts asked about, what is known beforehand, and how the answer is shown.

mod known;
mod report;

pub(crate) use known::KnownArgs;
pub(crate) use report::{Answer, Report};
