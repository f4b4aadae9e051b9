//! Contexts that were seen, and which of them is nearest to a new one.

use crate::error::{Error, Result, check_finite};
use crate::model::Context;

/// One or more contexts of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownContexts {
    dimension: usize,
    values: Vec<f64>,
}

impl KnownContexts {
    /// From row-major values.
    pub fn new(dimension: usize, values: Vec<f64>) -> Result<Self> {
        if dimension == 0 || values.is_empty() || !values.len().is_multiple_of(dimension) {
            let found = format!("{} numbers for contexts of length {dimension}", values.len());
            return Err(Error::shape("known contexts", "rows of one length, at least 1", found));
        }
        check_finite("known contexts", &values)?;
        Ok(Self { dimension, values })
    }

    /// Length d of a context.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of contexts, at least one.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.values.len() / self.dimension
    }

    /// The contexts, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The nearest in the ∞-norm, the first of equals.
    pub fn nearest(&self, context: &Context) -> Result<usize> {
        let c = context.values();
        if c.len() != self.dimension {
            let reason = format!("it has {} numbers; the known contexts have {}", c.len(), self.dimension);
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        let distance = |row: &[f64]| row.iter().zip(c).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
        let distances: Vec<f64> = self.values.chunks_exact(self.dimension).map(distance).collect();
        Ok((1..distances.len()).fold(0, |best, i| if distances[i] < distances[best] { i } else { best }))
    }
}
