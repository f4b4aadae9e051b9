//! Contexts: checked vectors in a declared space.

use crate::error::{Error, Result, check_room};
use crate::random::stream;
use rand::RngExt;

/// How far a context may be from the simplex before it is refused.
const SIMPLEX_TOLERANCE: f64 = 1e-6;
/// A number that a file says without a byte to back it must not decide how much memory a context takes.
const MOST_DIMENSIONS: usize = 1 << 20;

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

    /// Contexts drawn uniformly; the same seed gives the same contexts, and a longer list begins with the shorter one. The
    /// space must be bounded: nothing is uniform on [`ContextSpace::Any`].
    pub fn sample(&self, n: usize, seed: u64) -> Result<Vec<Context>> {
        self.check()?;
        check_room("numbers of the contexts", &[n, self.dimension().unwrap_or(1)])?;
        let draw = |i: usize| {
            let mut rng = stream(seed, "context", i as u64);
            match self {
                ContextSpace::Simplex { dimension } => {
                    // Exponential variables divided by their sum are uniform on the simplex.
                    let parts: Vec<f64> = (0..*dimension).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
                    let total: f64 = parts.iter().sum();
                    // All of them may be zero, however seldom; then none is more than another.
                    let share = |x: &f64| if total > 0.0 { x / total } else { 1.0 / *dimension as f64 };
                    Ok(parts.iter().map(share).collect())
                }
                ContextSpace::Box { lower, upper } => {
                    Ok(lower.iter().zip(upper).map(|(l, u)| l + (u - l) * rng.random::<f64>()).collect())
                }
                ContextSpace::Any => {
                    let reason = "the model declares no space of contexts to draw from".into();
                    Err(Error::InvalidContext { values: Vec::new(), reason })
                }
            }
        };
        (0..n).map(|i| draw(i).map(Context)).collect()
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
            ContextSpace::Simplex { dimension } => (!(1..=MOST_DIMENSIONS).contains(dimension))
                .then(|| format!("a simplex of dimension {dimension}; expected 1 to {MOST_DIMENSIONS}")),
            ContextSpace::Box { lower, upper } => {
                let fits = !lower.is_empty()
                    && lower.len() == upper.len()
                    && lower
                        .iter()
                        .zip(upper)
                        .all(|(l, u)| l <= u && l.is_finite() && u.is_finite() && (u - l).is_finite());
                (!fits).then(|| "a box needs as many lower as upper bounds, none above its partner or farther from it than a number can say".to_owned())
            }
            ContextSpace::Any => None,
        };
        bad.map_or(Ok(()), |reason| Err(Error::InvalidContext { values: Vec::new(), reason }))
    }
}
