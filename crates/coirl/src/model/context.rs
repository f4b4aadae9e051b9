//! Contexts: checked vectors in a declared space.

use crate::error::{Error, Result};

/// How far a context may be from the simplex before it is refused.
const SIMPLEX_TOLERANCE: f64 = 1e-6;

/// Where contexts live.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ContextSpace {
    /// Non-negative numbers that sum to one.
    Simplex {
        /// Length d of a context.
        dimension: usize,
    },
    /// Numbers between a lower and an upper bound each.
    Box {
        /// Lower bounds.
        lower: Vec<f64>,
        /// Upper bounds.
        upper: Vec<f64>,
    },
    /// Any finite vector: nothing is declared.
    Any,
}

/// A vector that its space has accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Context(Box<[f64]>);

impl Context {
    /// The numbers.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

impl ContextSpace {
    /// Length of a context, where the space fixes it.
    pub fn dimension(&self) -> Option<usize> {
        match self {
            ContextSpace::Simplex { dimension } => Some(*dimension),
            ContextSpace::Box { lower, .. } => Some(lower.len()),
            ContextSpace::Any => None,
        }
    }

    /// The vector as a context, or why it is none.
    pub fn context(&self, values: impl Into<Vec<f64>>) -> Result<Context> {
        let values = values.into();
        match self.objection(&values) {
            Some(reason) => Err(Error::InvalidContext { values, reason }),
            None => Ok(Context(values.into())),
        }
    }

    fn objection(&self, values: &[f64]) -> Option<String> {
        if values.is_empty() {
            return Some("a context needs at least one number".into());
        }
        if let Some(d) = self.dimension().filter(|&d| d != values.len()) {
            return Some(format!("it has {} numbers; expected {d}", values.len()));
        }
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            return Some(format!("entry {i} is {}; expected a finite number", values[i]));
        }
        match self {
            ContextSpace::Simplex { .. } => {
                if let Some(i) = values.iter().position(|&x| x < 0.0) {
                    return Some(format!("entry {i} is {}; entries on the simplex are not negative", values[i]));
                }
                let sum: f64 = values.iter().sum();
                ((sum - 1.0).abs() > SIMPLEX_TOLERANCE)
                    .then(|| format!("it sums to {sum}; a point on the simplex sums to 1"))
            }
            ContextSpace::Box { lower, upper } => {
                let i = (0..values.len()).find(|&i| !(lower[i]..=upper[i]).contains(&values[i]))?;
                Some(format!("entry {i} is {}; expected a number in [{}, {}]", values[i], lower[i], upper[i]))
            }
            ContextSpace::Any => None,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let bad = match self {
            ContextSpace::Simplex { dimension } => (*dimension == 0).then(|| "a simplex of no dimension".to_owned()),
            ContextSpace::Box { lower, upper } => {
                let fits = !lower.is_empty()
                    && lower.len() == upper.len()
                    && lower.iter().zip(upper).all(|(l, u)| l.is_finite() && u.is_finite() && l <= u);
                (!fits).then(|| "a box needs as many lower as upper bounds, none above its partner".to_owned())
            }
            ContextSpace::Any => None,
        };
        bad.map_or(Ok(()), |reason| Err(Error::InvalidContext { values: Vec::new(), reason }))
    }
}
