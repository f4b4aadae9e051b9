//! Memory of the size of the kernel, kept between plans.
//!
//! Fresh memory of that size costs page faults on every plan, so each thread keeps its own.

use crate::plan::kernels::candidates::Candidates;
use crate::plan::kernels::linear::Scratch;
use crate::plan::kernels::occupancies::LaneBuffers;
use crate::plan::kernels::ordered::OrderedPolicy;
use crate::plan::kernels::sweep::PolicyMatrix;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
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
    pub(in crate::plan) ordered: OrderedPolicy,
}

/// What planning in single precision writes to.
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

type Owner<B> = LocalKey<Cell<Option<B>>>;

thread_local! {
    static PLANNING: Cell<Option<Buffers>> = const { Cell::new(None) };
    static OCCUPANCY: Cell<Option<OccupancyBuffers>> = const { Cell::new(None) };
}

/// Buffers of this thread, lent until they are dropped; fresh ones where its own are lent already.
pub(in crate::plan) struct Lent<B: Default + 'static> {
    buffers: B,
    owner: &'static Owner<B>,
    kept: bool,
}

impl<B: Default> Lent<B> {
    fn by(owner: &'static Owner<B>, n_entries: usize) -> Self {
        Self { buffers: owner.take().unwrap_or_default(), owner, kept: n_entries <= KEPT_ENTRIES }
    }
}

impl<B: Default> Drop for Lent<B> {
    fn drop(&mut self) {
        if self.kept {
            self.owner.set(Some(std::mem::take(&mut self.buffers)));
        }
    }
}

impl<B: Default> Deref for Lent<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.buffers
    }
}

impl<B: Default> DerefMut for Lent<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.buffers
    }
}

impl Buffers {
    /// This thread's buffers of planning, for a kernel of so many entries.
    pub(in crate::plan) fn lent(n_entries: usize) -> Lent<Self> {
        Lent::by(&PLANNING, n_entries)
    }
}

impl OccupancyBuffers {
    /// This thread's buffers of occupancies, for a kernel of so many entries.
    pub(in crate::plan) fn lent(n_entries: usize) -> Lent<Self> {
        Lent::by(&OCCUPANCY, n_entries)
    }
}
