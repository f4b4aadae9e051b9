//! The distance that decides: double precision, always summed in the same order, without fused operations. Whatever is
//! skipped or estimated elsewhere, two centres are told apart by these numbers.

/// Sums side by side, so that the additions need not wait for one another.
const SUMS: usize = 8;

/// ‖row − centre‖².
pub(super) fn squared_distance(row: &[f32], centre: &[f64]) -> f64 {
    sum_of_squares(row.iter().map(|&x| f64::from(x)), centre)
}

/// ‖a − b‖².
pub(super) fn squared_shift(a: &[f64], b: &[f64]) -> f64 {
    sum_of_squares(a.iter().copied(), b)
}

#[inline(always)]
fn sum_of_squares(row: impl Iterator<Item = f64>, centre: &[f64]) -> f64 {
    let mut sums = [0.0; SUMS];
    for (j, (x, c)) in row.zip(centre).enumerate() {
        sums[j % SUMS] += (x - c) * (x - c);
    }
    sums.iter().sum()
}

/// The nearest of `centres` (row-major), the first of equals, and its squared distance.
pub(super) fn nearest(row: &[f32], centres: &[f64]) -> (usize, f64) {
    let distances = centres.chunks_exact(row.len()).map(|centre| squared_distance(row, centre)).enumerate();
    distances.fold((0, f64::INFINITY), |best, new| if new.1 < best.1 { new } else { best })
}
