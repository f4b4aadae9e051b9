//! From a table of people to a contextual model.
//!
//! A clinical data scientist has a long table: one row per stay and step, with who, when, measurements, doses and the outcome. A [`Spec`] says
//! which column is what; [`build`] makes a [`Cohort`] of it:
//!
//! ```text
//! rows ─→ stays ─→ split by patient ─┬→ measurements ─→ points ─→ k-means ─→ states ─┐
//!            │                       ├→ doses ─→ levels ─→ actions ──────────────────┼→ counts ─→ model
//!          flow                      └→ fields ─→ contexts ──────────────────────────┘
//! ```
//!
//! Everything below the split is fitted on training stays only; [`apply`] codes a new table with it, and a [`Person`] is recognised by it. What should be looked at comes as [`Finding`]s; [`select`] helps to choose the
//! number of states and the measurements.

pub mod agreement;
mod build;
mod contexts;
mod doses;
mod encoder;
mod exam;
mod lint;
mod measurements;
mod model;
mod natural_order;
mod new_tables;
mod observations;
pub mod off_policy;
mod parts;
mod patients;
pub mod presets;
mod provenance;
mod rare_actions;
mod recorded;
mod recorded_steps;
pub mod rules;
mod run_defaults;
mod select;
mod spec;
mod split;
mod stays;
mod step_length;
pub mod synthetic;
mod table;

pub use build::{Cohort, Stage as BuildStage, build, lint};
pub use contexts::{ContextField, ContextScaling};
pub use doses::DoseLevels;
pub use encoder::{Actions, Encoder};
pub use exam::{AgentAgreement, Exam, ExamSettings, Examined, OffPolicy};
pub use lint::{Finding, Severity};
pub use measurements::{Measurement, Measurements, Reading};
pub use model::{Ends, SupportSummary};
pub use new_tables::{
    Applied, ColumnDrift, ColumnReference, Compared, Drift, Known, KnownField, Person, Recognised, Reference, Role,
    RowReference, Shift, Unusual, apply,
};
pub use observations::Observations;
pub use parts::{PartSummary, admitted_share};
pub use provenance::{ColumnProvenance, Purpose};
pub use recorded::{RecordedStay, TestStays, TrainStays, ValidationStays};
pub use run_defaults::run_defaults;
pub use select::{Candidate, CandidateScore, Likelihood, Selected, Selection, Stage as SelectionStage, select};
pub use spec::{
    ActionSpec, ColumnSpec, ContextScale, ContextSpec, DynamicsSpec, FilterSpec, Gaps, Impute, ObservationsSpec,
    OutcomeSpec, RewardFeatures, RewardSpec, SameStep, Several, Spec, SplitSpec, StateSpec, TableSpec, Transform,
    Unsupported,
};
pub use split::draw;
pub use stays::{Flow, FlowStep};
pub use step_length::StepLength;
pub use table::Table;
