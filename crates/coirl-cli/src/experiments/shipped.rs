//! The experiments that ship with the program.

use crate::failure::Failure;
use coirl::nearest::nearest;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../experiments/", $name, ".toml")))),*]
    };
}

/// Names and files, in the order of the paper.
pub(crate) const SHIPPED: [(&str, &str); 11] = files![
    "grid-run-time",
    "driving-interactive",
    "driving-online",
    "driving-trajectories",
    "sepsis-online",
    "sepsis-linear",
    "sepsis-threshold",
    "patients",
    "guarantees",
    "beyond-demonstrations",
    "beyond-plans",
];

/// The file of an experiment.
pub(crate) fn shipped(name: &str) -> Result<&'static str, Failure> {
    let found = SHIPPED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = SHIPPED.iter().map(|(known, _)| *known).collect();
        let meant = nearest(name, &names).unwrap_or_default();
        Failure::refused(format!(
            "there is no experiment '{name}'; did you mean '{meant}'? `coirl experiment list` names all"
        ))
    })
}
