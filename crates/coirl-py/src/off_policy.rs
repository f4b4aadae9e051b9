//! Off-policy evaluation of probabilities at recorded steps.

use crate::arrays::{numbers, rows, vector};
use crate::model::{from_json, to_json};
use crate::threads::on_threads;
use coirl_cohort::off_policy::{
    AssessmentSettings, Behaviour, BehaviourSettings, Episode, Record, StepPolicy, assess as assessed, recorded_outcome,
};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What policies would have reached. `begins` says where each episode begins among the steps. Policies are `[steps, actions]`; softness mixes the behaviour
/// into each.
#[pyfunction]
#[pyo3(signature = (n_states, n_actions, discount, patients, begins, states, actions, rewards, covariates, behaviour, behaviour_settings, policies, softness, settings))]
#[allow(clippy::too_many_arguments)] // the columns of a record, and settings
pub(crate) fn assess<'py>(
    py: Python<'py>,
    n_states: usize,
    n_actions: usize,
    discount: f64,
    patients: PyReadonlyArray1<'_, i64>,
    begins: PyReadonlyArray1<'_, i64>,
    states: PyReadonlyArray1<'_, i64>,
    actions: PyReadonlyArray1<'_, i64>,
    rewards: PyReadonlyArray1<'_, f64>,
    covariates: Option<PyReadonlyArray2<'_, f32>>,
    behaviour: Option<PyReadonlyArray2<'_, f64>>,
    behaviour_settings: &str,
    policies: Vec<(String, PyReadonlyArray2<'_, f64>)>,
    softness: f64,
    settings: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let behaviour_settings: BehaviourSettings = from_json(py, "behaviour", behaviour_settings)?;
    let settings: AssessmentSettings = from_json(py, "settings", settings)?;
    let (states, actions, rewards) = (numbers(&states)?, numbers(&actions)?, numbers(&rewards)?);
    let (patients, begins) = (numbers(&patients)?, numbers(&begins)?);
    let number = |x: &i64| u32::try_from(*x).unwrap_or(u32::MAX);
    let mut episodes = Vec::with_capacity(begins.len());
    for (i, &begin) in begins.iter().enumerate() {
        let own = usize::try_from(begin).unwrap_or(0)
            ..begins.get(i + 1).map_or(states.len(), |&end| usize::try_from(end).unwrap_or(0));
        let bad = || pyo3::exceptions::PyTypeError::new_err("the columns of the record do not fit together");
        episodes.push(Episode {
            patient: patients.get(i).copied().unwrap_or_default() as u64,
            states: states.get(own.clone()).ok_or_else(bad)?.iter().map(number).collect(),
            actions: actions.get(own.clone()).ok_or_else(bad)?.iter().map(number).collect(),
            rewards: rewards.get(own).ok_or_else(bad)?.to_vec(),
        });
    }
    let covariates = match &covariates {
        Some(given) => Some((given.shape()[1], rows(given)?.to_vec())),
        None => None,
    };
    let known = behaviour.as_ref().map(rows).transpose()?.map(<[f64]>::to_vec);
    let mut given = Vec::new();
    for (name, policy) in &policies {
        given.push((name.clone(), rows(policy)?.to_vec()));
    }
    let (recorded, calibration, found, probabilities) = on_threads(py, move || {
        let mut record = Record::new(n_states, n_actions, discount, episodes)?;
        if let Some((width, values)) = covariates {
            record = record.with_covariates(width, values)?;
        }
        let behaviour = match known {
            Some(probabilities) => Behaviour::known(&record, StepPolicy::new(&record, probabilities)?)?,
            None => Behaviour::estimate(&record, &behaviour_settings)?,
        };
        let mut found = Vec::new();
        for (name, probabilities) in given {
            let policy = StepPolicy::new(&record, probabilities)?.softened(softness, behaviour.policy())?;
            found.push((name, assessed(&record, &behaviour, &policy, &settings)?));
        }
        let recorded = recorded_outcome(&record, &settings.resampling)?;
        Ok((recorded, behaviour.calibration().clone(), found, behaviour.policy().probabilities().to_vec()))
    })?;
    let dict = PyDict::new(py);
    dict.set_item(
        "result",
        to_json(&serde_json::json!({
            "recorded": recorded,
            "calibration": calibration,
            "policies": found,
        }))?,
    )?;
    dict.set_item("behaviour", vector(py, probabilities))?;
    Ok(dict)
}
