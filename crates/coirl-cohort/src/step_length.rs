//! How long a step is: a number in the unit of the time column, or, where times are dates, a number with a unit such as `90 days`.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Units of time, by all of their names, in seconds.
const UNITS: [(&[&str], f64); 5] = [
    (&["second", "seconds", "s"], 1.0),
    (&["minute", "minutes", "min"], 60.0),
    (&["hour", "hours", "h"], 3_600.0),
    (&["day", "days", "d"], 86_400.0),
    (&["week", "weeks", "w"], 604_800.0),
];

/// The time between two steps.
#[derive(Debug, Clone, PartialEq)]
pub enum StepLength {
    /// In the unit of the time column; in seconds where times are dates.
    Number(f64),
    /// With a unit of its own, as it was written: only dates can be divided by it.
    Duration {
        /// Seconds.
        seconds: f64,
        /// What was written.
        written: String,
    },
}

impl StepLength {
    /// The number that times are divided by.
    pub fn value(&self) -> f64 {
        match self {
            StepLength::Number(x) => *x,
            StepLength::Duration { seconds, .. } => *seconds,
        }
    }
}

impl fmt::Display for StepLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepLength::Number(x) => write!(f, "{x}"),
            StepLength::Duration { written, .. } => f.write_str(written),
        }
    }
}

impl FromStr for StepLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
        let (number, unit) = (text[..end].trim(), text[end..].trim());
        let wanted =
            "expected a number, or a number and a unit (seconds, minutes, hours, days, weeks) as in \"90 days\"";
        let number: f64 = match number {
            "" => return Err(format!("'{text}' has no number; {wanted}")),
            number => number.parse().map_err(|_| format!("'{text}': '{number}' is no number; {wanted}"))?,
        };
        if unit.is_empty() {
            return Ok(StepLength::Number(number));
        }
        let known = UNITS.iter().find(|(names, _)| names.contains(&unit.to_lowercase().as_str()));
        let (_, seconds) = known.ok_or_else(|| format!("'{text}': unknown unit '{unit}'; {wanted}"))?;
        Ok(StepLength::Duration { seconds: number * seconds, written: text.to_owned() })
    }
}

impl Serialize for StepLength {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StepLength::Number(x) => serializer.serialize_f64(*x),
            StepLength::Duration { written, .. } => serializer.serialize_str(written),
        }
    }
}

impl<'de> Deserialize<'de> for StepLength {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = StepLength;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a number and a unit as in \"90 days\"")
            }

            fn visit_f64<E: de::Error>(self, x: f64) -> Result<StepLength, E> {
                Ok(StepLength::Number(x))
            }

            fn visit_i64<E: de::Error>(self, x: i64) -> Result<StepLength, E> {
                Ok(StepLength::Number(x as f64))
            }

            fn visit_u64<E: de::Error>(self, x: u64) -> Result<StepLength, E> {
                Ok(StepLength::Number(x as f64))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StepLength, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_by_name() {
        let seconds = |text: &str| text.parse::<StepLength>().map(|step| step.value());
        assert_eq!(seconds("90 days"), Ok(7_776_000.0));
        assert_eq!(seconds("4h"), Ok(14_400.0));
        assert_eq!(seconds("1 Week"), Ok(604_800.0));
        assert_eq!(seconds("30 minutes"), Ok(1_800.0));
        assert_eq!("1.5".parse(), Ok(StepLength::Number(1.5)));
        assert!(seconds("2 fortnights").is_err_and(|reason| reason.contains("'fortnights'")));
        assert!(seconds("days").is_err_and(|reason| reason.contains("no number")));
    }
}
