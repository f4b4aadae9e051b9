//! The distance that decides: double precision, always summed in the same order, without fused operations. Whatever is
//! skipped or estimated elsewhere, two centres are told apart by these numbers.

/// Sums side by side, so that the additions need not wait for one another.
const SUMS: usize = 8;

/// ‖row − centre‖².
pub(super) fn squared_distance(row: &[f32], centre: &[f64]) -> f64 {
    sum_of_squares(row, centre, f64::from)
}

/// ‖a − b‖².
pub(super) fn squared_shift(a: &[f64], b: &[f64]) -> f64 {
    sum_of_squares(a, b, |x| x)
}

#[inline(always)]
fn sum_of_squares<T: Copy>(row: &[T], centre: &[f64], number: impl Fn(T) -> f64) -> f64 {
    let ((row, row_rest), (centre, centre_rest)) = (row.as_chunks::<SUMS>(), centre.as_chunks::<SUMS>());
    let mut sums = [0.0; SUMS];
    let square = |x: T, c: f64| (number(x) - c) * (number(x) - c);
    for (x, c) in row.iter().zip(centre) {
        for lane in 0..SUMS {
            sums[lane] += square(x[lane], c[lane]);
        }
    }
    for ((sum, &x), &c) in sums.iter_mut().zip(row_rest).zip(centre_rest) {
        *sum += square(x, c);
    }
    sums.iter().sum()
}

/// The nearest of `centres` (row-major), the first of equals, and its squared distance.
pub(super) fn nearest(row: &[f32], centres: &[f64]) -> (usize, f64) {
    let distances = centres.chunks_exact(row.len()).map(|centre| squared_distance(row, centre)).enumerate();
    distances.fold((0, f64::INFINITY), |best, new| if new.1 < best.1 { new } else { best })
}
