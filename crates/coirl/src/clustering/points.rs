//! Rows of measurements, checked.

use crate::error::{Error, Result};

/// Rows of finite numbers, all of one width.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    values: Vec<f32>,
    width: usize,
}

impl Points {
    /// `values` row by row, `width` numbers each. Fails where there is no row or no column, where the last row is cut
    /// short, and on numbers that are not finite.
    pub fn new(values: Vec<f32>, width: usize) -> Result<Self> {
        if width == 0 || values.is_empty() {
            let found = format!("{} numbers in rows of {width}", values.len());
            return Err(Error::shape("points", "at least one row and one column", found));
        }
        if !values.len().is_multiple_of(width) {
            return Err(Error::shape("points", format!("whole rows of {width}"), format!("{} numbers", values.len())));
        }
        let n_rows = values.len() / width;
        let limit = u32::MAX as usize;
        if n_rows > limit {
            return Err(Error::TooLarge { what: "points", count: n_rows, limit });
        }
        match values.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(Error::CellNotFinite {
                what: "points",
                row: at / width,
                column: at % width,
                value: values[at].into(),
            }),
            None => Ok(Self { values, width }),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.values.len() / self.width
    }

    /// Numbers per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All numbers, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The rows in their order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.width)
    }

    pub(super) fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.width..(index + 1) * self.width]
    }
}
