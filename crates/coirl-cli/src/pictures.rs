//! Pictures: of experiments, and of what a reward makes of a domain. Everything is written as SVG on white, so that it can be read on a
//! page of any colour, and can be turned into PNG.
//!
//! The same numbers give the same bytes. Nothing in a picture refers to another part of it by name, so that several fit on one page.

mod axis;
mod drawing;
mod experiment;
mod legend;
mod marker;
mod panel;
mod png;
mod rows;
mod style;

pub(crate) use experiment::{experiment_pictures, stem};
pub(crate) use png::png_of;
