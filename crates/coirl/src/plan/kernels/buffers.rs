//! Memory of the size of the kernel, kept between plans.
//!
//! Fresh memory of that size costs page faults on every plan, so each thread keeps its own.

use crate::plan::kernels::candidates::Candidates;
use crate::plan::kernels::linear::Scratch;
use crate::plan::kernels::occupancies::LaneBuffers;
use crate::plan::kernels::sweep::PolicyMatrix;
use std::cell::RefCell;
use std::thread::LocalKey;

/// Buffers of planning for kernels above this many entries are given back.
const KEPT_ENTRIES: usize = 20_000_000;

/// What planning writes to besides its result.
#[derive(Debug, Default)]
pub(in crate::plan) struct Buffers {
    pub(in crate::plan) candidates: Candidates<f64>,
    /// q of every row.
    pub(in crate::plan) q: Vec<f64>,
    pub(in crate::plan) single: SingleBuffers,
    pub(in crate::plan) matrix: PolicyMatrix,
    pub(in crate::plan) scratch: Scratch,
}

/// The same in single precision.
#[derive(Debug, Default)]
pub(in crate::plan) struct SingleBuffers {
    pub(in crate::plan) candidates: Candidates<f32>,
    pub(in crate::plan) q: Vec<f32>,
    pub(in crate::plan) reward: Vec<f32>,
    pub(in crate::plan) values: Vec<f32>,
    pub(in crate::plan) backed: Vec<f32>,
}

/// What evaluating an occupancy writes to.
#[derive(Debug, Default)]
pub(in crate::plan) struct OccupancyBuffers {
    pub(in crate::plan) krylov: Scratch,
    pub(in crate::plan) matrix: PolicyMatrix,
    pub(in crate::plan) single: PolicyMatrix<f32>,
    /// The place of each state among those visited.
    pub(in crate::plan) local: Vec<u32>,
    pub(in crate::plan) rows: Vec<u32>,
    pub(in crate::plan) lanes: LaneBuffers,
}

thread_local! {
    static PLANNING: RefCell<Buffers> = RefCell::default();
    static OCCUPANCY: RefCell<OccupancyBuffers> = RefCell::default();
}

/// Runs `work` with this thread's buffers of planning.
pub(in crate::plan) fn with_buffers<R>(n_entries: usize, work: impl FnOnce(&mut Buffers) -> R) -> R {
    lend(&PLANNING, n_entries, work)
}

/// Runs `work` with this thread's buffers of occupancies.
pub(in crate::plan) fn with_occupancy_buffers<R>(n_entries: usize, work: impl FnOnce(&mut OccupancyBuffers) -> R) -> R {
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
