//! Every centre to the mean of its rows.
//!
//! A mean is summed in double precision in the order of the rows, whatever the threads. Centres whose rows are the same as
//! before are left alone, which is also the exact result. A centre without rows moves to the row that is farthest from its
//! nearest centre, the first of equals, counting centres moved just before: the rule cannot raise the sum of squares.

use super::distance::{squared_distance, squared_shift};
use super::frame::SHARE;
use super::points::Points;
use rayon::prelude::*;

/// The rows of every cluster.
pub(super) struct Members {
    /// Rows ordered by cluster, then by number.
    rows: Vec<u32>,
    /// Where each cluster's rows start; one more than there are clusters.
    starts: Vec<u32>,
}

impl Members {
    pub(super) fn new(centre_of: &[u32], n_clusters: usize) -> Self {
        let mut starts = vec![0_u32; n_clusters + 1];
        centre_of.iter().for_each(|&centre| starts[centre as usize + 1] += 1);
        (0..n_clusters).for_each(|cluster| starts[cluster + 1] += starts[cluster]);
        let mut next = starts.clone();
        let mut rows = vec![0; centre_of.len()];
        for (row, &centre) in centre_of.iter().enumerate() {
            let place = &mut next[centre as usize];
            rows[*place as usize] = row as u32;
            *place += 1;
        }
        Self { rows, starts }
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.starts.windows(2).map(|ends| ends[1] - ends[0])
    }

    fn of(&self, cluster: usize) -> &[u32] {
        &self.rows[self.starts[cluster] as usize..self.starts[cluster + 1] as usize]
    }
}

/// Moves the centres (row-major) whose rows have `changed`, and gives how far each has moved.
pub(super) fn move_to_means(
    points: &Points,
    centre_of: &[u32],
    members: &Members,
    changed: &[bool],
    centres: &mut [f64],
) -> Vec<f64> {
    let width = points.width();
    let mut shifts: Vec<f64> = centres
        .par_chunks_mut(width)
        .zip(changed)
        .enumerate()
        .map(|(cluster, (centre, &changed))| {
            let rows = members.of(cluster);
            if !changed || rows.is_empty() {
                return 0.0;
            }
            let mut mean = vec![0.0; width];
            for &row in rows {
                mean.iter_mut().zip(points.row(row as usize)).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            mean.iter_mut().for_each(|sum| *sum /= rows.len() as f64);
            let shift = squared_shift(&mean, centre).sqrt();
            centre.copy_from_slice(&mean);
            shift
        })
        .collect();
    let empty: Vec<usize> = members.counts().enumerate().filter(|entry| entry.1 == 0).map(|entry| entry.0).collect();
    if !empty.is_empty() {
        let mut distances = squared_distances(points, centre_of, centres);
        for cluster in empty {
            let farther = |best: (usize, f64), new: (usize, f64)| if new.1 > best.1 { new } else { best };
            let (row, distance) = distances.iter().copied().enumerate().fold((0, 0.0), farther);
            if distance > 0.0 {
                let to: Vec<f64> = points.row(row).iter().map(|&x| x.into()).collect();
                let centre = &mut centres[cluster * width..(cluster + 1) * width];
                shifts[cluster] = squared_shift(&to, centre).sqrt();
                centre.copy_from_slice(&to);
                distances.par_iter_mut().enumerate().with_min_len(SHARE).for_each(|(row, distance)| {
                    *distance = distance.min(squared_distance(points.row(row), &to));
                });
            }
        }
    }
    shifts
}

/// Squared distance of every row from its centre.
pub(super) fn squared_distances(points: &Points, centre_of: &[u32], centres: &[f64]) -> Vec<f64> {
    let width = points.width();
    let distance =
        |(row, &centre): (usize, &u32)| squared_distance(points.row(row), &centres[centre as usize * width..][..width]);
    centre_of.par_iter().enumerate().with_min_len(SHARE).map(distance).collect()
}
