//! How far a long computation has come.

use crate::error::{Error, Result};
use std::ops::ControlFlow;

/// Called after every part of the work; the callback can stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Parts done.
    pub done: usize,
    /// Parts there are at most.
    pub total: usize,
}

/// The callback.
pub(super) type Listener<'l> = &'l mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Tells, and stops where that is asked for.
pub(super) fn tell(listener: Listener<'_>, done: usize, total: usize) -> Result<()> {
    match listener(Progress { done, total }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted { done, total }),
    }
}
