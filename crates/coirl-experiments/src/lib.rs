//! The experiments of the paper, and ours: files that say what is studied, who takes part, what is drawn and what is claimed.
//!
//! An [`Experiment`] is read from TOML, run seed by seed, and gives [`Curve`]s; [`over_seeds`] makes means of them and
//! [`Experiment::judge`] compares these with what the paper says. Same seed, same curves: what costs time is counted in Bellman backups and
//! planner calls, not in seconds.

mod claims;
mod clinicians;
pub mod cohort;
mod curves;
mod experiment;
mod studies;
mod world;

pub use claims::{Check, Claim, Expected, Found, Judged, Verdict};
pub use clinicians::mapping_of_clinicians;
pub use curves::{Curve, MeanCurve, Point, SeedCurves, over_seeds};
pub use experiment::{Axis, Entrant, Experiment, Given, Picture, Scale, Watcher};
pub use studies::{Guarantees, Interactive, Offline, Online, Patients, RunTime, Study};
pub use world::{Place, Seen, Subject, World, Yardsticks};
