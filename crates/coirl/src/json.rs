//! JSON has no numbers beyond the finite ones and writes them as `null`; here they come back.

use serde::{Deserialize, Deserializer};

/// `null` is a quotient without a value.
pub(crate) fn not_a_number<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or(f64::NAN))
}

/// `null` is a bound that does not bind.
pub(crate) fn unbounded<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or(f64::INFINITY))
}

/// Reads a bound that may be null (none) or missing altogether.
pub(crate) fn unbounded_where_present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    unbounded(input).map(Some)
}
