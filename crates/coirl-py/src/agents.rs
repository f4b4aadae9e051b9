//! What was learned.

use crate::arrays::{matrix, rows};
use crate::contexts::{accepted, matrix_rows};
use crate::demonstrations::GivenDemonstrations;
use crate::model::{Model, to_json};
use crate::policies;
use crate::threads::{at_once, on_threads};
use coirl::agent::Agent;
use coirl::agent::{Predictions, act};
use coirl::artifact::{read_fitted, write_fitted};
use coirl::demos::{Estimator, Validation};
use coirl::learn::Problem;
use coirl::mapping::LinearMapping;
use coirl::methods::Checkpoint;
use coirl::model::{Context, StateId};
use coirl::score::Examination;
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of a run.
#[pyclass(frozen, module = "coirl._coirl")]
pub(crate) struct Fitted {
    pub(crate) fitted: Arc<coirl::methods::Fitted>,
    /// Where the run can go on from; nothing for results that were read from a file.
    pub(crate) checkpoint: Option<Arc<Checkpoint>>,
}

/// A linear mapping from a matrix.
pub(crate) fn linear(py: Python<'_>, values: &PyReadonlyArray2<'_, f64>) -> PyResult<LinearMapping> {
    LinearMapping::new(values.shape()[0], values.shape()[1], rows(values)?.to_vec())
        .map_err(|error| crate::errors::raised(py, error))
}

#[pymethods]
impl Fitted {
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let fitted = at_once(py, || read_fitted(&path))?;
        Ok(Self { fitted: Arc::new(fitted), checkpoint: None })
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        at_once(py, || write_fitted(&path, &self.fitted))
    }

    /// What it is, in a word.
    #[getter]
    fn kind(&self) -> &'static str {
        self.fitted.agent.kind()
    }

    /// W of a linear mapping; nothing for agents without one.
    fn mapping<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        match self.fitted.agent.mapping() {
            Ok(own) => matrix(py, own.dimension(), own.n_features(), own.values().to_vec()).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The weights that everybody has, of a linear mapping that was learned with them.
    fn intercept(&self) -> Option<Vec<f64>> {
        self.fitted.agent.mapping().ok().and_then(|own| own.intercept()).map(<[f64]>::to_vec)
    }

    /// Everything but the agent, as JSON.
    fn summary(&self) -> PyResult<String> {
        let fitted = &self.fitted;
        to_json(&serde_json::json!({
            "status": fitted.status,
            "certificate": fitted.certificate,
            "history": fitted.history,
            "settings": fitted.settings,
            "names": fitted.names,
            "digest": fitted.digest,
            "demonstrations": fitted.demonstrations,
            "planner_calls": fitted.planner_calls,
            "steps": fitted.steps,
        }))
    }

    /// f(c) for every context.
    fn weights<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        contexts: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let given = matrix_rows(&contexts)?;
        let n = given.len();
        let (k, values) = at_once(py, || {
            let contexts = accepted(&model.0, given)?;
            let mapping = self.fitted.agent.reward_mapping()?;
            Ok((mapping.n_features(), mapping.weights_of_all(&contexts)?))
        })?;
        matrix(py, n, k, values)
    }

    /// For every context the policies with their probabilities and feature expectations.
    fn act<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        contexts: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let given = matrix_rows(&contexts)?;
        let (own, fitted) = (model.0.clone(), self.fitted.clone());
        let all = on_threads(py, move || act(&own, &fitted.agent, &accepted(&own, given)?))?;
        let list = PyList::empty(py);
        for behaviours in all {
            let of_context = PyList::empty(py);
            for behaviour in behaviours {
                let policy = policies::array(py, model.0.pairs(), &behaviour.policy)?;
                of_context.append((
                    behaviour.share,
                    policy,
                    crate::arrays::vector(py, behaviour.feature_expectations.to_vec()),
                ))?;
            }
            list.append(of_context)?;
        }
        Ok(list)
    }

    /// How the agent does beside an expert with a known mapping, as JSON; NaN is null.
    fn score(
        &self,
        py: Python<'_>,
        model: &Model,
        truth: PyReadonlyArray2<'_, f64>,
        contexts: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<String> {
        let (truth, given) = (linear(py, &truth)?, matrix_rows(&contexts)?);
        let (own, fitted) = (model.0.clone(), self.fitted.clone());
        let score =
            on_threads(py, move || Examination::new(&own, &truth, accepted(&own, given)?)?.score(&fitted.agent))?;
        to_json(&score)
    }

    /// Share of the demonstrated actions that the agent would take.
    fn accuracy(&self, py: Python<'_>, model: &Model, demonstrations: GivenDemonstrations<'_>) -> PyResult<f64> {
        let given = demonstrations.read()?;
        let (own, fitted) = (model.0.clone(), self.fitted.clone());
        on_threads(py, move || {
            let validation = Validation::new(given.checked(&own)?);
            let problem = Problem::validation(&own, &validation, &Estimator::Truncated { horizon: None })?;
            if (0..problem.len()).all(|i| problem.data().trajectories(i).is_empty()) {
                return Err(coirl::Error::NoActions { method: "scoring by accuracy" });
            }
            problem.accuracy(&fitted.agent)
        })
    }

    /// Loss(W)/‖W‖ of a linear mapping on demonstrations; nothing for other agents.
    fn loss(
        &self,
        py: Python<'_>,
        model: &Model,
        demonstrations: GivenDemonstrations<'_>,
        estimator: &str,
    ) -> PyResult<Option<f64>> {
        let given = demonstrations.read()?;
        let estimator: Option<Estimator> = crate::model::from_json(py, "estimator", estimator)?;
        let (own, fitted) = (model.0.clone(), self.fitted.clone());
        on_threads(py, move || {
            let Agent::Planned(mapping) = &fitted.agent else { return Ok(None) };
            let validation = Validation::new(given.checked(&own)?);
            Problem::validation(&own, &validation, estimator.as_ref())?.unit_loss(mapping.values())
        })
    }

    /// Probabilities of every action at every visited state, `[visits, actions]`: states of a context follow each other.
    fn predictions<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        contexts: PyReadonlyArray2<'_, f64>,
        visits: Vec<Vec<u32>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let given = matrix_rows(&contexts)?;
        let (own, fitted) = (model.0.clone(), self.fitted.clone());
        let n_states = own.n_states();
        let found = on_threads(py, move || {
            let contexts: Vec<Context> = accepted(&own, given)?;
            if contexts.len() != visits.len() {
                let (expected, found) = (contexts.len().to_string(), visits.len().to_string());
                return Err(coirl::Error::Shape { what: "visits (one list per context)", expected, found });
            }
            if let Some(state) = visits.iter().flatten().find(|&&state| state as usize >= n_states) {
                return Err(coirl::Error::StateOutOfRange { number: 0, state: *state as usize, n_states });
            }
            let visits: Vec<Vec<StateId>> =
                visits.into_iter().map(|list| list.into_iter().map(StateId).collect()).collect();
            let visits: Vec<&[StateId]> = visits.iter().map(Vec::as_slice).collect();
            match fitted.chooser() {
                Some(chooser) => Predictions::of(&own, &chooser, &contexts, &visits),
                None => Predictions::of(&own, &fitted.agent, &contexts, &visits),
            }
        })?;
        let n_actions = found.n_actions();
        matrix(py, found.probabilities().len() / n_actions, n_actions, found.probabilities().to_vec())
    }

    /// Whether the run can go on.
    #[getter]
    fn can_go_on(&self) -> bool {
        self.checkpoint.is_some()
    }

    fn __repr__(&self) -> String {
        format!("<fitted {} agent, {} steps>", self.fitted.agent.kind(), self.fitted.steps)
    }
}

/// JSON text as a Python dictionary.
pub(crate) fn parsed<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let loads = py.import("json")?.getattr("loads")?;
    loads.call1((to_json(value)?,))
}
