//! Memory of the size of the kernel, kept between plans.
//!
//! Fresh memory of that size costs more page faults than the planning it serves, so each thread keeps its own.

use super::candidates::Candidates;
use super::linear::Scratch;
use super::sweep::PolicyMatrix;
use std::cell::RefCell;

/// Buffers of planning for kernels above this many entries are given back.
const KEPT_ENTRIES: usize = 20_000_000;

/// What planning writes to besides its result.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) candidates: Candidates<f64>,
    /// q of every row.
    pub(super) q: Vec<f64>,
    pub(super) single: SingleBuffers,
    pub(super) matrix: PolicyMatrix,
    pub(super) scratch: Scratch,
}

/// The same in single precision.
#[derive(Debug, Default)]
pub(super) struct SingleBuffers {
    pub(super) candidates: Candidates<f32>,
    pub(super) q: Vec<f32>,
    pub(super) reward: Vec<f32>,
    pub(super) values: Vec<f32>,
    pub(super) backed: Vec<f32>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Runs `work` with this thread's buffers.
pub(super) fn with_buffers<R>(n_entries: usize, work: impl FnOnce(&mut Buffers) -> R) -> R {
    BUFFERS.with(|buffers| match buffers.try_borrow_mut() {
        Ok(mut buffers) => {
            let result = work(&mut buffers);
            if n_entries > KEPT_ENTRIES {
                *buffers = Buffers::default();
            }
            result
        }
        Err(_) => work(&mut Buffers::default()),
    })
}
