//! Inputs brought to mean zero and deviation one.

use crate::error::{Error, Result, check_finite, check_length};

/// Subtracts `shift` and divides by `scale`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standardisation {
    /// What is subtracted.
    pub shift: Vec<f64>,
    /// What is divided by; no entry is zero.
    pub scale: Vec<f64>,
}

impl Standardisation {
    /// Weighted mean and deviation of every column; a column that does not vary is divided by one.
    pub fn fitted<'a>(width: usize, rows: impl Iterator<Item = (&'a [f64], f64)> + Clone) -> Self {
        let total: f64 = rows.clone().map(|(_, weight)| weight).sum();
        let mut shift = vec![0.0; width];
        for (row, weight) in rows.clone() {
            shift.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight / total * x);
        }
        let mut scale = vec![0.0; width];
        for (row, weight) in rows {
            let off = scale.iter_mut().zip(row.iter().zip(&shift));
            off.for_each(|(sum, (x, mean))| *sum += weight / total * (x - mean).powi(2));
        }
        for (deviation, mean) in scale.iter_mut().zip(&shift) {
            *deviation = deviation.sqrt();
            // What is left of a constant is rounding; divided by it, other rows would get enormous inputs.
            if *deviation <= 1e-9 * mean.abs().max(1e-300) {
                *deviation = 1.0;
            }
        }
        Self { shift, scale }
    }

    /// Refuses lengths other than `width`, numbers that are not finite, and scales that are not above zero.
    pub fn check(&self, width: usize) -> Result<()> {
        check_length("shift of the context", width, self.shift.len())?;
        check_length("scale of the context", width, self.scale.len())?;
        check_finite("shift of the context", &self.shift)?;
        check_finite("scale of the context", &self.scale)?;
        match self.scale.iter().find(|scale| !(**scale > 0.0)) {
            Some(scale) => Err(Error::shape("scale of the context", "numbers above 0", scale)),
            None => Ok(()),
        }
    }

    /// (x − shift) / scale.
    pub fn of(&self, values: &[f64]) -> Vec<f64> {
        values.iter().zip(self.shift.iter().zip(&self.scale)).map(|(x, (shift, scale))| (x - shift) / scale).collect()
    }
}
