//! Tables of people: what an intensive care unit records, stay by stay.

pub mod synthetic;
