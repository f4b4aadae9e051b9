//! Pictures: of experiments, and of what a reward makes of a domain. Everything is written as SVG on white, so that it can be read on a
//! page of any colour, and can be turned into PNG.
//!
//! The same numbers give the same bytes. Nothing in a picture refers to another part of it by name, so that several fit on one page.

mod arrow;
mod axis;
mod drawing;
mod driving;
mod experiment;
mod grid;
mod legend;
mod marker;
mod panel;
mod png;
mod road;
mod roll_out;
mod rows;
mod style;

pub(crate) use driving::driving_picture;
pub(crate) use experiment::{experiment_pictures, stem};
pub(crate) use grid::grid_picture;
pub(crate) use png::png_of;
pub(crate) use roll_out::roll_out_picture;
