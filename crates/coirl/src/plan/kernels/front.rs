//! The elimination of the first columns of a dense block, without pivoting.
//!
//! Rows are eliminated one by one against panels of columns that are finished, so a large block is shared between threads by rows. No multiply-add
//! is fused and the order of every sum is fixed: all instruction sets and any number of threads give the same bits.

#![allow(unsafe_code)] // calls of functions compiled for instructions that were asked for at run time

use crate::simd::Simd;
use rayon::prelude::*;

/// Columns that are finished together.
const PANEL: usize = 32;
/// Rows that a thread takes at a time, and the numbers of a block from which sharing it pays.
const SHARED_ROWS: usize = 32;
const SHARED_NUMBERS: usize = 100_000;

/// Replaces a row-major block of `size` rows and columns by the factors of its first `width` columns, L (with ones on its diagonal) below
/// and U on and above the diagonal, and the rest by its Schur complement.
pub(in crate::plan) fn eliminate(block: &mut [f64], size: usize, width: usize) {
    assert!(block.len() == size * size && width <= size);
    for first in (0..width).step_by(PANEL) {
        let end = (first + PANEL).min(width);
        let (above, below) = block[first * size..].split_at_mut((end - first) * size);
        for i in 1..end - first {
            let (finished, row) = above.split_at_mut(i * size);
            let panel = Panel { rows: finished, size, first, end: first + i };
            panel.eliminate(&mut row[..size]);
        }
        let panel = Panel { rows: above, size, first, end };
        if below.len() >= SHARED_NUMBERS {
            below.par_chunks_mut(SHARED_ROWS * size).for_each(|rows| panel.eliminate(rows));
        } else {
            panel.eliminate(below);
        }
    }
}

/// Finished rows of U, those of columns `first` to `end`.
#[derive(Clone, Copy)]
struct Panel<'a> {
    rows: &'a [f64],
    size: usize,
    first: usize,
    end: usize,
}

impl Panel<'_> {
    /// Eliminates the columns of the panel from some rows.
    fn eliminate(self, rows: &mut [f64]) {
        match Simd::Auto.resolve() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `resolve` returns only what this processor has.
            Simd::Avx512 => unsafe { self.eliminate_avx512(rows) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Simd::Avx2 => unsafe { self.eliminate_avx2(rows) },
            _ => self.eliminate_rows(rows),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn eliminate_avx2(self, rows: &mut [f64]) {
        self.eliminate_rows(rows);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn eliminate_avx512(self, rows: &mut [f64]) {
        self.eliminate_rows(rows);
    }

    #[inline(always)]
    fn eliminate_rows(self, rows: &mut [f64]) {
        let mut pairs = rows.chunks_exact_mut(2 * self.size);
        for pair in &mut pairs {
            let (one, other) = pair.split_at_mut(self.size);
            self.eliminate_some([one, other]);
        }
        for row in pairs.into_remainder().chunks_exact_mut(self.size) {
            self.eliminate_some([row]);
        }
    }

    /// Several rows at a time, because each then needs the panel from memory only once.
    #[inline(always)]
    fn eliminate_some<const N: usize>(self, mut rows: [&mut [f64]; N]) {
        let Self { rows: upper, size, first, end } = self;
        let row_of = |k: usize| &upper[(k - first) * size..(k - first + 1) * size];
        for row in &mut rows {
            for k in first..end {
                let pivot = row_of(k);
                let share = row[k] / pivot[k];
                row[k] = share;
                row[k + 1..end].iter_mut().zip(&pivot[k + 1..end]).for_each(|(x, u)| *x -= share * u);
            }
        }
        let length = size - end;
        let mut rest = rows.map(|row| row.split_at_mut(end));
        let mut k = first;
        while k + 4 <= end {
            let [u0, u1, u2, u3] = [0, 1, 2, 3].map(|i| &row_of(k + i)[end..][..length]);
            let shares = rest.each_ref().map(|(finished, _)| [0, 1, 2, 3].map(|i| finished[k + i]));
            let out = rest.each_mut().map(|(_, open)| &mut open[..length]);
            for j in 0..length {
                for n in 0..N {
                    let [a, b, c, d] = shares[n];
                    out[n][j] -= (a * u0[j] + b * u1[j]) + (c * u2[j] + d * u3[j]);
                }
            }
            k += 4;
        }
        for k in k..end {
            let u = &row_of(k)[end..][..length];
            for (finished, open) in &mut rest {
                let share = finished[k];
                open[..length].iter_mut().zip(u).for_each(|(x, u)| *x -= share * u);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::random;
    use rand::RngExt as _;

    /// A block whose rows are dominated by their diagonals.
    fn block(size: usize) -> Vec<f64> {
        let mut rng = random::stream(7, "front", size as u64);
        let mut block: Vec<f64> = (0..size * size).map(|_| -rng.random::<f64>()).collect();
        for i in 0..size {
            block[i * size + i] = size as f64 + 1.0;
        }
        block
    }

    #[test]
    fn factors_multiply_to_the_block() {
        for (size, width) in [(1, 1), (5, 3), (33, 33), (70, 41), (400, 100)] {
            let given = block(size);
            let mut factors = given.clone();
            eliminate(&mut factors, size, width);
            for i in 0..size {
                for j in 0..size {
                    let both = i.min(j).min(width);
                    let l = |k: usize| factors[i * size + k];
                    let mut sum: f64 = (0..both).map(|k| l(k) * factors[k * size + j]).sum();
                    // The diagonal of L is one; what is not eliminated is left of the Schur complement.
                    sum += if i < width && i <= j || i >= width && j >= width {
                        factors[i * size + j]
                    } else {
                        factors[i * size + j] * factors[j * size + j]
                    };
                    let off = (sum - given[i * size + j]).abs();
                    assert!(off <= 1e-12 * size as f64, "{size} {width}: ({i}, {j}) off by {off}");
                }
            }
        }
    }

    #[test]
    fn threads_and_instructions_do_not_matter() {
        let (size, width) = (420, 75);
        let whole = {
            let mut block = block(size);
            rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .build()
                .unwrap()
                .install(|| eliminate(&mut block, size, width));
            block
        };
        let mut shared = block(size);
        rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(|| eliminate(&mut shared, size, width));
        assert!(whole.iter().zip(&shared).all(|(a, b)| a.to_bits() == b.to_bits()));
        let mut portable = block(size);
        for first in (0..width).step_by(PANEL) {
            let end = (first + PANEL).min(width);
            let (above, below) = portable[first * size..].split_at_mut((end - first) * size);
            for i in 1..end - first {
                let (rows, row) = above.split_at_mut(i * size);
                Panel { rows, size, first, end: first + i }.eliminate_rows(&mut row[..size]);
            }
            Panel { rows: above, size, first, end }.eliminate_rows(below);
        }
        assert!(whole.iter().zip(&portable).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}
