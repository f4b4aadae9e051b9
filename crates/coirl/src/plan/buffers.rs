//! Memory of the size of the kernel, kept between plans.
//!
//! Fresh memory of that size costs page faults on every plan, so each thread keeps its own.

use super::candidates::Candidates;
use super::linear::Scratch;
use super::occupancies::LaneBuffers;
use super::sweep::PolicyMatrix;
use std::cell::RefCell;
use std::thread::LocalKey;

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

/// What evaluating an occupancy writes to.
#[derive(Debug, Default)]
pub(super) struct OccupancyBuffers {
    pub(super) krylov: Scratch,
    pub(super) matrix: PolicyMatrix,
    pub(super) single: PolicyMatrix<f32>,
    /// The place of each state among those visited.
    pub(super) local: Vec<u32>,
    pub(super) rows: Vec<u32>,
    pub(super) lanes: LaneBuffers,
}

thread_local! {
    static PLANNING: RefCell<Buffers> = RefCell::default();
    static OCCUPANCY: RefCell<OccupancyBuffers> = RefCell::default();
}

/// Runs `work` with this thread's buffers of planning.
pub(super) fn with_buffers<R>(n_entries: usize, work: impl FnOnce(&mut Buffers) -> R) -> R {
    lend(&PLANNING, n_entries, work)
}

/// Runs `work` with this thread's buffers of occupancies.
pub(super) fn with_occupancy_buffers<R>(n_entries: usize, work: impl FnOnce(&mut OccupancyBuffers) -> R) -> R {
    lend(&OCCUPANCY, n_entries, work)
}

fn lend<B: Default, R>(key: &'static LocalKey<RefCell<B>>, n_entries: usize, work: impl FnOnce(&mut B) -> R) -> R {
    key.with(|buffers| match buffers.try_borrow_mut() {
        Ok(mut buffers) => {
            let result = work(&mut buffers);
            if n_entries > KEPT_ENTRIES {
                *buffers = B::default();
            }
            result
        }
        Err(_) => work(&mut B::default()),
    })
}
