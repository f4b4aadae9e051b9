//! Centres of clusters, and the nearest of them to a row.

use super::assignment::Assignment;
use super::distance;
use super::frame::Frame;
use super::points::Points;
use crate::error::{Error, Result, check_length};

/// Centres in double precision, all of one width.
#[derive(Debug, Clone, PartialEq)]
pub struct Centroids {
    values: Vec<f64>,
    width: usize,
}

impl Centroids {
    /// `values` row by row, `width` numbers each; fails as [`Points::new`] does.
    pub fn new(values: Vec<f64>, width: usize) -> Result<Self> {
        if width == 0 || values.is_empty() || !values.len().is_multiple_of(width) {
            let found = format!("{} numbers in rows of {width}", values.len());
            return Err(Error::shape("centroids", "whole rows, at least one of them", found));
        }
        let limit = u32::MAX as usize - 1;
        if values.len() / width > limit {
            return Err(Error::TooLarge { what: "centroids", count: values.len() / width, limit });
        }
        match values.iter().position(|x| !x.is_finite()) {
            Some(at) => {
                Err(Error::CellNotFinite { what: "centroids", row: at / width, column: at % width, value: values[at] })
            }
            None => Ok(Self { values, width }),
        }
    }

    /// Number of centroids.
    pub fn n_clusters(&self) -> usize {
        self.values.len() / self.width
    }

    /// Numbers per centroid.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All numbers, centroid by centroid.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The centroids in their order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }

    /// The nearest centroid to a row, the first of equals, and its squared distance.
    pub fn nearest(&self, row: &[f32]) -> Result<(usize, f64)> {
        check_length("row", self.width, row.len())?;
        match row.iter().position(|x| !x.is_finite()) {
            Some(index) => Err(Error::NotFinite { what: "row", index, value: row[index].into() }),
            None => Ok(distance::nearest(row, &self.values)),
        }
    }

    /// The nearest centroid to each row, as [`Centroids::nearest`] gives it, many rows at a time.
    pub fn assign(&self, points: &Points) -> Result<Vec<u32>> {
        check_length("points' rows", self.width, points.width())?;
        let frame = Frame::around(points, &self.values);
        let rows = frame.rows(points);
        let mut assignment = Assignment::new(points, &frame, &rows, &self.values);
        assignment.assign(&self.values);
        Ok(assignment.centre_of)
    }

    pub(super) fn from_rows(values: Vec<f64>, width: usize) -> Self {
        Self { values, width }
    }
}
