//! Coordinates in which single precision is safe: the origin in the middle of the rows, lengths scaled by a power of two so
//! that no square overflows.
//!
//! A score s(x, c) = ½‖c‖² − x·c orders the centres as the distance does, ‖x − c‖² = ‖x‖² + 2s. In single precision it is
//! wrong by no more than `slack`, the usual bound for a sum of d products (γ_d = dε/(1 − dε), Higham 2002, §3.1) with the
//! rounding of x, c and ½‖c‖² added.

use super::points::Points;
use rayon::prelude::*;

/// Rows per share of parallel work; fixed, so that sums do not depend on the threads.
pub(super) const SHARE: usize = 4096;

/// Relative error of one operation in single precision.
const UNIT: f32 = f32::EPSILON / 2.0;

/// Origin and scale.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    origin: Vec<f64>,
    scale: f64,
}

/// Rows in a frame.
#[derive(Debug)]
pub(super) struct FramedRows {
    pub(super) values: Vec<f32>,
    pub(super) width: usize,
    /// ‖x‖ and ‖x‖² of every row.
    pub(super) lengths: Vec<(f32, f32)>,
}

impl Frame {
    /// A frame for these rows and centres.
    pub(super) fn around(points: &Points, centres: &[f64]) -> Self {
        let origin = column_means(points);
        let width = points.width();
        let far = |most: f64, x: f64, j: usize| most.max((x - origin[j % width]).abs());
        let of_rows = points
            .values()
            .par_chunks(SHARE * width)
            .map(|rows| rows.iter().enumerate().fold(0.0, |most, (i, &x)| far(most, x.into(), i)))
            .reduce(|| 0.0, f64::max);
        let most = centres.iter().enumerate().fold(of_rows, |most, (i, &c)| far(most, c, i));
        // Rows that are all the same have no length to scale by.
        let scale = if most > 0.0 { (-most.log2().ceil()).exp2() } else { 1.0 };
        Self { origin, scale }
    }

    /// A length in this frame.
    pub(super) fn length(&self, length: f64) -> f64 {
        length * self.scale
    }

    /// A centre in this frame.
    pub(super) fn centre<'f>(&'f self, centre: &'f [f64]) -> impl Iterator<Item = f64> + 'f {
        centre.iter().zip(&self.origin).map(|(c, m)| (c - m) * self.scale)
    }

    /// The rows in this frame.
    pub(super) fn rows(&self, points: &Points) -> FramedRows {
        let width = points.width();
        let mut values = vec![0.0; points.values().len()];
        let mut lengths = vec![(0.0, 0.0); points.n_rows()];
        let rows = points.values().par_chunks(SHARE * width);
        (values.par_chunks_mut(SHARE * width), rows, lengths.par_chunks_mut(SHARE)).into_par_iter().for_each(
            |(own, rows, lengths)| {
                for ((own, row), length) in own.chunks_exact_mut(width).zip(rows.chunks_exact(width)).zip(lengths) {
                    let mut sum = 0.0;
                    for ((y, x), m) in own.iter_mut().zip(row).zip(&self.origin) {
                        *y = ((f64::from(*x) - m) * self.scale) as f32;
                        sum += f64::from(*y) * f64::from(*y);
                    }
                    *length = (sum.sqrt() as f32, sum as f32);
                }
            },
        );
        FramedRows { values, width, lengths }
    }
}

/// How wrong a score can be: `constant + by_length·‖x‖` for a row x, and a share of ‖x‖².
#[derive(Debug, Clone, Copy)]
pub(super) struct Slack {
    constant: f32,
    by_length: f32,
}

impl Slack {
    /// For centres no longer than this.
    pub(super) fn new(width: usize, longest: f32) -> Self {
        let by_length = (width + 8) as f32 * UNIT * longest;
        Self { constant: 0.5 * by_length * longest + f32::MIN_POSITIVE, by_length }
    }

    /// For a row of this length; the share of ‖x‖² is for distances that are turned into scores and back.
    pub(super) fn of(self, (length, square): (f32, f32)) -> f32 {
        self.constant + self.by_length * length + 4.0 * UNIT * square
    }
}

/// Mean of every column, summed share by share.
fn column_means(points: &Points) -> Vec<f64> {
    column_sums(points, |_, x| x).into_iter().map(|sum| sum / points.n_rows() as f64).collect()
}

/// Variances of the columns, averaged over the columns.
pub(super) fn mean_variance(points: &Points) -> f64 {
    let means = column_means(points);
    column_sums(points, |j, x| (x - means[j]) * (x - means[j])).iter().sum::<f64>() / points.values().len() as f64
}

fn column_sums(points: &Points, term: impl Fn(usize, f64) -> f64 + Sync) -> Vec<f64> {
    let width = points.width();
    let of_share = |rows: &[f32]| {
        let mut sums = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            sums.iter_mut().zip(row).enumerate().for_each(|(j, (sum, &x))| *sum += term(j, x.into()));
        }
        sums
    };
    let shares: Vec<Vec<f64>> = points.values().par_chunks(SHARE * width).map(of_share).collect();
    (0..width).map(|j| shares.iter().map(|sums| sums[j]).sum()).collect()
}
