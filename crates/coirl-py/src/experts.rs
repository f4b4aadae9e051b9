//! Experts that learners ask: simulated ones, and people or programs behind a Python object.

use crate::arrays::vector;
use crate::errors::panicked;
use coirl::Error;
use coirl::demos::{Answer, Expert, SimulatedExpert};
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Context, Mdp};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception that a callback raised, kept until the work has ended.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    pub(crate) fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Who is asked: a mapping with what it tolerates, or a callable.
pub(crate) enum GivenExpert {
    Simulated { truth: LinearMapping, tolerance: f64, radius: f64, trajectories: Option<(usize, usize)>, seed: u64 },
    Asked { callable: Py<PyAny>, raised: Raised },
}

impl GivenExpert {
    pub(crate) fn of(self, model: &Cmdp) -> coirl::Result<Box<dyn Expert>> {
        match self {
            Self::Simulated { truth, tolerance, radius, trajectories, seed } => {
                let mut expert = SimulatedExpert::new(model, truth, tolerance, seed)?;
                (expert.radius, expert.trajectories) = (radius, trajectories);
                Ok(Box::new(expert))
            }
            Self::Asked { callable, raised } => Ok(Box::new(Asked { callable, raised })),
        }
    }
}

/// `callable(query, context, feature_expectations)` gives nothing where the agent does well enough, and otherwise the feature expectations
/// of how it is done.
struct Asked {
    callable: Py<PyAny>,
    raised: Raised,
}

impl Expert for Asked {
    fn answer(&self, query: u64, context: &Context, mdp: &Mdp<'_>, agent: &[f64]) -> coirl::Result<Answer> {
        let asked = Python::attach(|py| {
            let (context, agent) = (vector(py, context.values().to_vec()), vector(py, agent.to_vec()));
            self.callable.bind(py).call1((query, context, agent))?.extract::<Option<Vec<f64>>>()
        });
        let n = mdp.features().n_features();
        match asked {
            Ok(None) => Ok(Answer::GoodEnough),
            Ok(Some(shown)) if shown.len() != n => Err(Error::Shape {
                what: "feature expectations of the expert",
                expected: n.to_string(),
                found: shown.len().to_string(),
            }),
            Ok(Some(shown)) => match shown.iter().position(|x| !x.is_finite()) {
                None => Ok(Answer::Demonstration(shown)),
                Some(index) => {
                    let value = shown[index];
                    Err(Error::NotFinite { what: "feature expectations of the expert", index, value })
                }
            },
            Err(error) => {
                self.raised.keep(error);
                Err(Error::Interrupted { done: query as usize, total: query as usize + 1 })
            }
        }
    }
}

/// What a callback raised, or a fault of ours where it raised nothing.
pub(crate) fn first_raised(raised: &Raised) -> PyErr {
    raised.take().unwrap_or_else(panicked)
}
