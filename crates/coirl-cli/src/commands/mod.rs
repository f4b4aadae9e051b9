//! One file per command.

pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod cohort;
pub(crate) mod completions;
pub(crate) mod demonstrate;
pub(crate) mod domain;
pub(crate) mod draw;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod info;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod reproduce;
