//! A synthetic cohort: what a table of intensive care patients looks like, written by the sepsis simulator with clinicians whose wishes
//! are known, so that everything learned from the table can be scored against the truth. Research software, not for clinical use.
//!
//! A stay is a patient of [`Sepsis::patients`](coirl::domains::Sepsis::patients) treated by a clinician who wants f*(c) and plans
//! for it, with lapses. Every bloc of four hours is a simulator state s and an action a = 5·fluid + vaso; its row *emits* measurements
//!
//! ```text
//! x_j = T_j⁻¹(centroid_j(s) + noise · N(0, 1)),
//! ```
//!
//! where T_j standardises column j (z-score, or z-score of ln(x + 0.1)). Given the state, rows do not depend on the past: a model fitted to the table
//! can be as good as the simulator, and no better. The two dose columns are the row's action, not the centroid's doses, as one standard amount
//! per level. [`Synthetic`] has the settings, [`Synthetic::generate`] the stays, [`Truth`] what to score against.
//!
//! The simulator's kernel and centroids are the aggregates of ICU-Sepsis 2.0.1 (Choudhary, Gupta & Thomas 2024, MIT licence). Means and standard
//! deviations in units are from the MIMIC-III Clinical Database Demo 1.4 (Johnson, Pollard & Mark 2019, PhysioNet, Open Database License
//! 1.0), as summaries of its columns. No patient's record is used.

mod assignment;
mod carried_back;
mod columns;
mod doses;
mod emission;
mod generate;
mod measurements;
mod outcome;
mod practice;
mod remembering;
mod settings;
mod stay;
mod test_patients;
mod truth;
mod worth;

pub use assignment::{Assignment, Draws};
pub use carried_back::{CarriedBack, FittedPolicy};
pub use columns::{N_COLUMNS, Row};
pub use remembering::AssignmentAfter;
pub use settings::{Clinician, Synthetic};
pub use stay::SyntheticStay;
pub use test_patients::{TestPatients, Yardsticks};
pub use truth::Truth;
pub use worth::Worth;
