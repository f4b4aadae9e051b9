//! The models that ship with the library.

use crate::arrays::{matrix, vector};
use crate::model::Model;
use crate::threads::at_once;
use coirl::domains::{
    Driving, DrivingActions, Epidemic, Garnet, Grid, Inadmissible, Maze, Pendulum, Polarity, Sepsis, SepsisDynamics,
};
use coirl::mapping::LinearMapping;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

/// One of a few words.
fn choice<T: Copy>(py: Python<'_>, name: &'static str, given: &str, choices: &[(&str, T)]) -> PyResult<T> {
    choices.iter().find(|(word, _)| *word == given).map(|(_, meant)| *meant).ok_or_else(|| {
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
        let message = format!("{name} = {given:?}: expected one of {}", words.join(", "));
        crate::errors::of_family(py, "SettingError", message)
    })
}

#[pyfunction]
pub(crate) fn grid(py: Python<'_>, width: usize, height: usize, discount: f64) -> PyResult<Model> {
    at_once(py, || Grid { width, height, discount }.build()).map(Model::new)
}

#[pyfunction]
pub(crate) fn driving(py: Python<'_>, actions: usize, polarity: &str, discount: f64) -> PyResult<Model> {
    let words = [("2", DrivingActions::Two), ("3", DrivingActions::Three)];
    let actions = choice(py, "actions", &actions.to_string(), &words)?;
    let polarity = choice(py, "polarity", polarity, &[("code", Polarity::Code), ("paper", Polarity::Paper)])?;
    at_once(py, || Driving { actions, polarity, discount }.build()).map(Model::new)
}

#[pyfunction]
pub(crate) fn sepsis(py: Python<'_>, inadmissible: &str, dynamics: &str, discount: f64) -> PyResult<Model> {
    let words = [("unknown", Inadmissible::Unknown), ("masked", Inadmissible::Masked)];
    let inadmissible = choice(py, "inadmissible", inadmissible, &words)?;
    let words = [
        ("shared", SepsisDynamics::Shared),
        ("mixture", SepsisDynamics::Mixture),
        ("clusters", SepsisDynamics::Clusters),
    ];
    let dynamics = choice(py, "dynamics", dynamics, &words)?;
    at_once(py, || Sepsis { inadmissible, dynamics, discount }.build()).map(Model::new)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the settings of a random model
pub(crate) fn garnet(
    py: Python<'_>,
    n_states: usize,
    n_actions: usize,
    n_successors: usize,
    n_features: usize,
    n_kernels: usize,
    admissible: f64,
    discount: f64,
    seed: u64,
) -> PyResult<Model> {
    let settings = Garnet { n_states, n_actions, n_successors, n_features, n_kernels, admissible, discount, seed };
    at_once(py, || settings.build()).map(Model::new)
}

#[pyfunction]
pub(crate) fn pendulum(py: Python<'_>, grid: usize, discount: f64) -> PyResult<Model> {
    at_once(py, || Pendulum { grid, discount }.build()).map(Model::new)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the settings of a maze
pub(crate) fn maze(
    py: Python<'_>,
    side: usize,
    slip: f64,
    walls: f64,
    mud: f64,
    danger: f64,
    discount: f64,
    seed: u64,
) -> PyResult<Model> {
    at_once(py, || Maze { side, slip, walls, mud, danger, discount, seed }.build()).map(Model::new)
}

#[pyfunction]
pub(crate) fn epidemic(py: Python<'_>, people: usize, window: usize, discount: f64) -> PyResult<Model> {
    at_once(py, || Epidemic { people, window, discount }.build()).map(Model::new)
}

/// Contexts and first states of simulated patients.
#[pyfunction]
#[allow(clippy::type_complexity)] // two arrays
pub(crate) fn sepsis_patients(
    py: Python<'_>,
    n: usize,
    seed: u64,
) -> PyResult<(Bound<'_, PyArray2<f64>>, Bound<'_, PyArray1<i64>>)> {
    let patients = at_once(py, || Sepsis::patients(n, seed))?;
    let d = patients.first().map_or(0, |patient| patient.context.values().len());
    let contexts = patients.iter().flat_map(|patient| patient.context.values()).copied().collect();
    let starts = patients.iter().map(|patient| i64::from(patient.start.0)).collect();
    Ok((matrix(py, n, d, contexts)?, vector(py, starts)))
}

/// The mapping of a domain's expert.
#[pyfunction]
pub(crate) fn known_mappings<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyArray2<f64>>> {
    type Maker = fn() -> LinearMapping;
    let makers = [
        ("driving", Driving::online_mapping as Maker),
        ("driving-interactive", Driving::interactive_mapping),
        ("sepsis", Sepsis::linear_mapping),
        ("pendulum", Pendulum::standard_mapping),
        ("maze", Maze::standard_mapping),
        ("epidemic", Epidemic::standard_mapping),
    ];
    let mapping = choice(py, "mapping", name, &makers)?();
    matrix(py, mapping.dimension(), mapping.n_features(), mapping.values().to_vec())
}
