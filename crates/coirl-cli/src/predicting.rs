//! Acting in a new context: the contexts asked about, what is known beforehand, and how the answer is shown.

mod followed;
mod known;
mod report;

pub(crate) use followed::Followed;
pub(crate) use known::KnownArgs;
pub(crate) use report::{Answer, Report};

use crate::failure::Failure;
use crate::numbers::short;
use coirl::model::Context;
use coirl_cohort::Unusual;
use std::io::Write;

/// Answers in every form they are asked for.
pub(crate) trait Answers {
    /// One object for one context, a list for a file of them.
    fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure>;
    /// A table for programs.
    fn write_csv(&self, out: &mut dyn Write) -> Result<(), Failure>;
    /// For people.
    fn write_text(&self, out: &mut dyn Write) -> Result<(), Failure>;
}

/// "speed=0.2, collision=0.8", or numbers.
fn named(context: &Context, names: &[String]) -> String {
    let number = |(i, x): (usize, &f64)| match names.get(i) {
        Some(name) => format!("{name}={}", short(*x)),
        None => short(*x),
    };
    context.values().iter().enumerate().map(number).collect::<Vec<_>>().join(", ")
}

/// A field outside all those that were learned from, for programs.
#[derive(serde::Serialize)]
struct Warned<'a> {
    message: String,
    #[serde(flatten)]
    field: &'a Unusual,
}

fn warned(unusual: &[Unusual]) -> Vec<Warned<'_>> {
    unusual.iter().map(|field| Warned { message: field.message(), field }).collect()
}
