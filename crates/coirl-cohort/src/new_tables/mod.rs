//! New people in a fitted cohort: nothing is fitted again, their rows are coded with the levels, scaling and states of the training stays. How
//! far a new table is from those is reported beside every conclusion from it.

mod apply;
mod drift;
mod person;
mod reference;

pub use apply::{Applied, apply};
pub use drift::{ColumnDrift, Compared, Drift, Shift};
pub use person::{Known, KnownField, Person, Recognised};
pub use reference::{ColumnReference, Reference, Role, RowReference, Unusual};
