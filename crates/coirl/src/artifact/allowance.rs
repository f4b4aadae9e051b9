//! How much of a compressed file may be kept in memory. Deflate makes up to a thousand bytes out of one, so that a file of a megabyte could fill
//! the memory of a machine.

use super::Place;
use crate::error::Result;
use std::cell::Cell;
use std::rc::Rc;

/// Allowed to any file.
const LEAST_LIMIT: u64 = 256 << 20;
/// Allowed to each byte of a file. Numbers and text that mean something rarely shrink to a fiftieth.
const LIMIT_PER_BYTE: u64 = 100;

/// How many bytes may be kept of what a file of `size` bytes unpacks to. What is not compressed stays below.
pub fn unpacked_limit(size: u64) -> u64 {
    size.saturating_mul(LIMIT_PER_BYTE).max(LEAST_LIMIT)
}

/// What is left of the limit of a file, shared by all its arrays.
#[derive(Debug, Clone)]
pub(super) struct Allowance {
    limit: u64,
    left: Rc<Cell<u64>>,
}

impl Allowance {
    pub(super) fn of_file(size: u64) -> Self {
        let limit = unpacked_limit(size);
        Self { limit, left: Rc::new(Cell::new(limit)) }
    }

    /// Counts `n` elements of type T that are to be kept of an array.
    pub(super) fn keep<T>(&self, place: &Place, n: usize) -> Result<()> {
        let bytes = (n as u64).saturating_mul(size_of::<T>() as u64);
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(place.refuse(format_args!(
                "unpacks beyond the {} bytes that may be kept of a file of this size; save it uncompressed, as numpy.savez does",
                self.limit
            ))),
        }
    }
}
