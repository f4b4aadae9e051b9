//! Demonstrations from arrays.

use crate::arrays::{numbers, rows};
use crate::contexts::matrix_rows;
use coirl::demos::{Demonstration, Trajectory};
use coirl::model::{ActionId, Cmdp, StateId};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Trajectories end to end: whose each is, where each begins in `states` (its actions are one fewer), and the numbers.
type GivenPaths<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>);

/// Demonstrations as Python passes them.
#[derive(FromPyObject)]
pub(crate) struct GivenDemonstrations<'py> {
    #[pyo3(attribute("contexts"))]
    contexts: PyReadonlyArray2<'py, f64>,
    #[pyo3(attribute("feature_expectations"))]
    expectations: Option<PyReadonlyArray2<'py, f64>>,
    #[pyo3(attribute("_paths"))]
    paths: Option<GivenPaths<'py>>,
    #[pyo3(attribute("starts"))]
    starts: Option<PyReadonlyArray1<'py, i64>>,
}

/// Demonstrations from Python as plain numbers.
pub(crate) struct RawDemonstrations {
    contexts: Vec<Vec<f64>>,
    expectations: Option<Vec<Vec<f64>>>,
    paths: Vec<Vec<Trajectory>>,
    starts: Option<Vec<i64>>,
}

impl GivenDemonstrations<'_> {
    /// Whether nothing was seen of anybody, and an expert has to be asked.
    pub(crate) fn has_contexts_only(&self) -> bool {
        self.expectations.is_none() && self.paths.is_none()
    }

    pub(crate) fn contexts(&self) -> PyResult<Vec<Vec<f64>>> {
        matrix_rows(&self.contexts)
    }

    pub(crate) fn read(&self) -> PyResult<RawDemonstrations> {
        let contexts = matrix_rows(&self.contexts)?;
        let expectations = match &self.expectations {
            Some(given) => {
                let (k, values) = (given.shape()[1], rows(given)?);
                Some((0..given.shape()[0]).map(|i| values[i * k..(i + 1) * k].to_vec()).collect())
            }
            None => None,
        };
        let mut paths = vec![Vec::new(); contexts.len()];
        if let Some((owners, begins, states, actions)) = &self.paths {
            let (owners, begins) = (numbers(owners)?, numbers(begins)?);
            let (states, actions) = (numbers(states)?, numbers(actions)?);
            let bad = || PyTypeError::new_err("the trajectories do not fit together");
            for (i, &owner) in owners.iter().enumerate() {
                let begin = usize::try_from(begins[i]).map_err(|_| bad())?;
                let end = begins.get(i + 1).map_or(Ok(states.len()), |&e| usize::try_from(e)).map_err(|_| bad())?;
                // Every trajectory before this one has a state more than actions.
                let own = states.get(begin..end).ok_or_else(bad)?;
                let taken = actions.get(begin - i..(end - i).saturating_sub(1)).ok_or_else(bad)?;
                let number = |&x: &i64| u32::try_from(x).unwrap_or(u32::MAX);
                let path = Trajectory {
                    states: own.iter().map(|x| StateId(number(x))).collect(),
                    actions: taken.iter().map(|x| ActionId(number(x))).collect(),
                };
                let list = usize::try_from(owner).ok().and_then(|owner| paths.get_mut(owner)).ok_or_else(bad)?;
                list.push(path);
            }
        }
        let starts = self.starts.as_ref().map(|starts| Ok::<_, PyErr>(numbers(starts)?.to_vec())).transpose()?;
        Ok(RawDemonstrations { contexts, expectations, paths, starts })
    }
}

impl RawDemonstrations {
    /// As demonstrations in a model.
    pub(crate) fn checked(self, model: &Cmdp) -> coirl::Result<Vec<Demonstration>> {
        let Self { contexts, expectations, paths, starts } = self;
        let mut expectations = expectations.map(Vec::into_iter);
        let mut demonstrations = Vec::with_capacity(contexts.len());
        for (i, (values, paths)) in contexts.into_iter().zip(paths).enumerate() {
            let context = model.context_space().context(values)?;
            let mut own = match expectations.as_mut().and_then(Iterator::next) {
                Some(mu) => Demonstration::from_feature_expectations(model, context, mu)?,
                None => Demonstration::from_trajectories(model, context, paths)?,
            };
            // A negative start is none.
            if let Some(start) = starts.as_ref().and_then(|starts| starts.get(i)).filter(|&&start| start >= 0) {
                own = own.starting_in(model, StateId(u32::try_from(*start).unwrap_or(u32::MAX)))?;
            }
            demonstrations.push(own);
        }
        Ok(demonstrations)
    }
}
