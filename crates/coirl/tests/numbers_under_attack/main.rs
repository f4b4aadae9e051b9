//! Whatever numbers are given, there is a result whose certificate holds, or an error: no hang, no panic, and no NaN that
//! pretends to be a result.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

#[path = "../effort/mod.rs"]
mod effort;

mod attempt;
mod extremes;
mod learners;
mod plans;
mod records;
mod regressions;
mod sizes;
mod transfers;
mod truth;
