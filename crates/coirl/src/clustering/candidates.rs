//! Squared distances of rows from eight candidates at once, each candidate a lane: Σ (x − q)² summed column by column in single
//! precision without fused operations, the same bits on every processor.

#![allow(unsafe_code)] // calls into target-feature functions

#[cfg(target_arch = "x86_64")]
use crate::simd::Simd;

/// Candidates side by side.
pub(super) const CANDIDATES: usize = 8;
/// Rows that are measured together, so that their sums need not wait for one another.
const TILE: usize = 4;

/// A number for each candidate.
pub(super) type PerCandidate = [f32; CANDIDATES];

/// ‖row − candidate‖² for one candidate, in sums side by side.
pub(super) fn squared_distance(row: &[f32], candidate: &[f32]) -> f32 {
    const SUMS: usize = 8;
    let ((row, row_rest), (candidate, rest)) = (row.as_chunks::<SUMS>(), candidate.as_chunks::<SUMS>());
    let mut sums = [0.0; SUMS];
    for (x, q) in row.iter().zip(candidate) {
        for lane in 0..SUMS {
            sums[lane] += (x[lane] - q[lane]) * (x[lane] - q[lane]);
        }
    }
    for ((sum, x), q) in sums.iter_mut().zip(row_rest).zip(rest) {
        *sum += (x - q) * (x - q);
    }
    sums.iter().sum()
}

/// `measured(i, distances)` for each row `i` of `listed`, in order. Rows are row-major, as wide as there are `coordinates`.
pub(super) fn measure(
    rows: &[f32],
    listed: &[u32],
    coordinates: &[PerCandidate],
    measured: impl FnMut(u32, PerCandidate),
) {
    #[cfg(target_arch = "x86_64")]
    if Simd::Auto.resolve() != Simd::Portable {
        // SAFETY: whatever is not portable has AVX2.
        unsafe { measure_avx2(rows, listed, coordinates, measured) };
        return;
    }
    measure_body(rows, listed, coordinates, measured);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn measure_avx2(rows: &[f32], listed: &[u32], coordinates: &[PerCandidate], measured: impl FnMut(u32, PerCandidate)) {
    measure_body(rows, listed, coordinates, measured);
}

#[inline(always)]
fn measure_body(
    rows: &[f32],
    listed: &[u32],
    coordinates: &[PerCandidate],
    mut measured: impl FnMut(u32, PerCandidate),
) {
    let (tiles, rest) = listed.as_chunks::<TILE>();
    for tile in tiles {
        let distances = tile_distances(rows, tile, coordinates);
        tile.iter().zip(distances).for_each(|(&row, distances)| measured(row, distances));
    }
    for row in rest {
        let [distances] = tile_distances(rows, &[*row], coordinates);
        measured(*row, distances);
    }
}

#[inline(always)]
fn tile_distances<const R: usize>(rows: &[f32], tile: &[u32; R], coordinates: &[PerCandidate]) -> [PerCandidate; R] {
    let width = coordinates.len();
    let own: [&[f32]; R] = std::array::from_fn(|r| &rows[tile[r] as usize * width..][..width]);
    let mut sums = [[0.0; CANDIDATES]; R];
    for (j, q) in coordinates.iter().enumerate() {
        for r in 0..R {
            let x = own[r][j];
            for l in 0..CANDIDATES {
                let difference = x - q[l];
                sums[r][l] += difference * difference;
            }
        }
    }
    sums
}
