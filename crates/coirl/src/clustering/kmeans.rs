//! Lloyd's iteration from a first guess, and the best of several.

use super::assignment::Assignment;
use super::centroids::Centroids;
use super::frame::{Frame, FramedRows, SHARE, mean_variance};
use super::means::{Members, move_to_means, squared_distances};
use super::points::Points;
use super::seeding::seeds;
use crate::error::{Error, Result, check_length};
use crate::random::stream;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Settings of k-means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KMeans {
    /// Number of clusters.
    pub clusters: usize,
    /// First guesses to start from; the result with the least inertia is kept, the first of equals.
    pub restarts: usize,
    /// Iterations from each first guess at most.
    pub max_iterations: usize,
    /// An iteration whose squared shifts, summed over the centroids, are at most this share of the columns' mean variance is
    /// the last. With 0 the iteration goes on until no row changes its cluster.
    pub tolerance: f64,
    /// Seed of the first guesses.
    pub seed: u64,
}

impl Default for KMeans {
    fn default() -> Self {
        Self { clusters: 8, restarts: 1, max_iterations: 300, tolerance: 1e-4, seed: 0 }
    }
}

/// What has been done since the last report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// One more first centroid was drawn.
    Drawn {
        /// Drawn so far, of [`KMeans::clusters`].
        centroids: usize,
    },
    /// The centroids were moved and the rows assigned anew.
    Moved {
        /// Iterations so far, of [`KMeans::max_iterations`] at most.
        iterations: usize,
        /// Rows that have another cluster than before.
        reassigned: usize,
        /// Squared shifts of the centroids over the columns' mean variance: what [`KMeans::tolerance`] is compared with.
        shift: f64,
    },
}

/// How far a fit has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// First guesses finished before, of [`KMeans::restarts`].
    pub restart: usize,
    /// What was done.
    pub step: Step,
}

/// Rows in clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// The centroids.
    pub centroids: Centroids,
    /// Cluster of each row: that of the nearest centroid, the first of equals.
    pub assignment: Vec<u32>,
    /// Rows of each cluster.
    pub counts: Vec<u32>,
    /// Sum over the rows of the squared distance from the centroid.
    pub inertia: f64,
    /// Iterations from the first guess that was kept.
    pub iterations: usize,
    /// Whether the tolerance was met. Where no row changed its cluster any more each centroid is the mean of its rows;
    /// otherwise it is the mean of those assigned one iteration before.
    pub converged: bool,
}

impl Clustering {
    /// The cluster of each of these rows, as [`Centroids::assign`].
    pub fn assign(&self, points: &Points) -> Result<Vec<u32>> {
        self.centroids.assign(points)
    }
}

impl KMeans {
    /// Clusters the rows. Fails on settings that make no sense and on fewer different rows than clusters.
    pub fn fit(&self, points: &Points) -> Result<Clustering> {
        self.fit_with(points, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`KMeans::fit`], with a callback that can stop it.
    pub fn fit_with(
        &self,
        points: &Points,
        listener: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Clustering> {
        self.check()?;
        let positive = |name: &'static str, value: usize| match value {
            0 => Err(Error::InvalidSetting { name, value: "0".into(), reason: "expected at least 1" }),
            _ => Ok(()),
        };
        positive("clusters", self.clusters)?;
        positive("restarts", self.restarts)?;
        if self.clusters > points.n_rows() {
            return Err(Error::TooFewDistinctRows { distinct: points.n_rows(), clusters: self.clusters });
        }
        let data = Data::new(points, &[]);
        let mut best: Option<Clustering> = None;
        for restart in 0..self.restarts {
            let mut tell = |step| listener(Progress { restart, step });
            let mut rng = stream(self.seed, "k-means", restart as u64);
            let drawn = &mut |centroids| tell(Step::Drawn { centroids });
            let first = seeds(points, data.frame.length(1.0), self.clusters, &mut rng, drawn)?;
            let found = self.iterate(&data, first, &mut tell)?;
            if best.as_ref().is_none_or(|best| found.inertia < best.inertia) {
                best = Some(found);
            }
        }
        best.ok_or(Error::InvalidSetting { name: "restarts", value: "0".into(), reason: "expected at least 1" })
    }

    /// Lloyd's iteration from these centroids; `clusters`, `restarts` and `seed` play no part.
    pub fn fit_from(
        &self,
        points: &Points,
        first: &Centroids,
        listener: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Clustering> {
        self.check()?;
        check_length("points' rows", first.width(), points.width())?;
        let data = Data::new(points, first.values());
        self.iterate(&data, first.values().to_vec(), &mut |step| listener(Progress { restart: 0, step }))
    }

    fn check(&self) -> Result<()> {
        if self.tolerance >= 0.0 && self.tolerance.is_finite() {
            return Ok(());
        }
        let value = self.tolerance.to_string();
        Err(Error::InvalidSetting { name: "tolerance", value, reason: "expected a number of at least 0" })
    }

    fn iterate(
        &self,
        data: &Data<'_>,
        mut centres: Vec<f64>,
        tell: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<Clustering> {
        let (points, width) = (data.points, data.points.width());
        let n_clusters = centres.len() / width;
        let mut rows = Assignment::new(points, &data.frame, &data.rows, &centres);
        rows.assign(&centres);
        let mut members = Members::new(&rows.centre_of, n_clusters);
        let mut changed = vec![true; n_clusters];
        let (mut iterations, mut converged) = (0, false);
        while iterations < self.max_iterations && !converged {
            iterations += 1;
            let shifts = move_to_means(points, &rows.centre_of, &members, &changed, &mut centres);
            let before = rows.centre_of.clone();
            rows.loosen(&shifts);
            rows.assign(&centres);
            let mut reassigned = 0;
            changed.fill(false);
            for (&from, &to) in before.iter().zip(&rows.centre_of).filter(|(from, to)| from != to) {
                changed[from as usize] = true;
                changed[to as usize] = true;
                reassigned += 1;
            }
            members = Members::new(&rows.centre_of, n_clusters);
            let squares: f64 = shifts.iter().map(|shift| shift * shift).sum();
            let settled = reassigned == 0 || squares <= self.tolerance * data.variance;
            converged = settled && members.counts().all(|count| count > 0);
            // Rows that are all the same have no variance, and centroids that do not move.
            let shift = if squares > 0.0 { squares / data.variance } else { 0.0 };
            if tell(Step::Moved { iterations, reassigned, shift }).is_break() {
                return Err(Error::Interrupted { done: iterations, total: self.max_iterations });
            }
        }
        let assignment = rows.centre_of;
        let squares = squared_distances(points, &assignment, &centres);
        // Summed share by share, which also keeps the rounding error small.
        let inertia = squares.chunks(SHARE).map(|share| share.iter().sum::<f64>()).sum();
        let centroids = Centroids::from_rows(centres, width);
        Ok(Clustering { centroids, counts: members.counts().collect(), assignment, inertia, iterations, converged })
    }
}

/// The rows and what every restart needs of them.
struct Data<'p> {
    points: &'p Points,
    frame: Frame,
    rows: FramedRows,
    /// Mean variance of the columns.
    variance: f64,
}

impl<'p> Data<'p> {
    fn new(points: &'p Points, centres: &[f64]) -> Self {
        let frame = Frame::around(points, centres);
        Self { points, rows: frame.rows(points), variance: mean_variance(points), frame }
    }
}
