//! From known contexts to new ones without planning anew.

use crate::agents::{Fitted, linear, parsed};
use crate::contexts::{accepted, matrix_rows};
use crate::errors::internal;
use crate::model::Model;
use crate::policies;
use crate::threads::at_once;
use coirl::mapping::LearnedMapping;
use coirl::model::{Cmdp, Context};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

self_cell::self_cell! {
    /// Knowledge beside the model that it is about.
    struct Owned {
        owner: Arc<Cmdp>,
        #[not_covariant]
        dependent: Borrowed,
    }
}

type Borrowed<'a> = coirl::transfer::Transfer<'a>;

/// What is known about the contexts of one mapping in one model.
#[pyclass(frozen, module = "coirl._coirl")]
pub(crate) struct Transfer(Mutex<Owned>);

impl Transfer {
    fn open(&self) -> MutexGuard<'_, Owned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(py: Python<'_>, model: &Model, mapping: LearnedMapping) -> PyResult<Self> {
        let owner = model.0.clone();
        at_once(py, || Owned::try_new(owner, |model| Borrowed::new(model, mapping)))
            .map(|owned| Self(Mutex::new(owned)))
    }
}

fn context(model: &Cmdp, values: Vec<f64>) -> coirl::Result<Context> {
    model.context_space().context(values)
}

#[pymethods]
impl Transfer {
    #[staticmethod]
    fn of_mapping(py: Python<'_>, model: &Model, mapping: PyReadonlyArray2<'_, f64>) -> PyResult<Self> {
        Self::make(py, model, linear(py, &mapping)?.into())
    }

    #[staticmethod]
    fn of_fitted(py: Python<'_>, model: &Model, fitted: &Fitted) -> PyResult<Self> {
        let kind = fitted.fitted.agent.kind();
        let mapping = fitted.fitted.agent.planned_for().ok_or(coirl::Error::NoMapping { agent: kind });
        Self::make(py, model, mapping.map_err(|error| crate::errors::raised(py, error))?)
    }

    fn n_contexts(&self) -> usize {
        self.open().with_dependent(|_, own| own.n_contexts())
    }

    fn n_policies(&self) -> usize {
        self.open().with_dependent(|_, own| own.n_policies())
    }

    /// Plans for contexts and remembers the policies.
    fn learn(&self, py: Python<'_>, contexts: PyReadonlyArray2<'_, f64>) -> PyResult<()> {
        let given = matrix_rows(&contexts)?;
        at_once(py, || self.open().with_dependent_mut(|model, own| own.learn(&accepted(model, given)?)))
    }

    /// Leaves out policies that are not needed on these contexts.
    fn prune(&self, py: Python<'_>, contexts: PyReadonlyArray2<'_, f64>) -> PyResult<usize> {
        let given = matrix_rows(&contexts)?;
        at_once(py, || self.open().with_dependent_mut(|model, own| own.prune(&accepted(model, given)?)))
    }

    /// The policy for a context: transferred where its bound is at most `wanted`, else planned.
    #[pyo3(signature = (model, values, wanted, always, remember))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        values: PyReadonlyArray1<'_, f64>,
        wanted: Option<f64>,
        always: bool,
        remember: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let values = crate::arrays::numbers(&values)?.to_vec();
        let found = at_once(py, || {
            self.open().with_dependent_mut(|model, own| {
                let context = context(model, values)?;
                match (always, remember) {
                    (true, _) => own.transfer(&context, wanted),
                    (false, true) => own.predict_and_learn(&context, wanted),
                    (false, false) => own.predict(&context, wanted),
                }
            })
        })?;
        let word = |value: serde_json::Result<serde_json::Value>| value.map_err(|error| internal(error.to_string()));
        let dict = PyDict::new(py);
        dict.set_item("policy", policies::array(py, model.0.pairs(), &found.policy)?)?;
        dict.set_item("values", crate::arrays::vector(py, found.values))?;
        dict.set_item("value", found.value)?;
        dict.set_item("how", parsed(py, &word(serde_json::to_value(found.how))?)?)?;
        dict.set_item("bound", found.bound)?;
        dict.set_item("bound_by", parsed(py, &word(serde_json::to_value(found.bound_by))?)?)?;
        dict.set_item("nearest", found.theorem.as_ref().map(|theorem| theorem.nearest))?;
        Ok(dict)
    }
}
