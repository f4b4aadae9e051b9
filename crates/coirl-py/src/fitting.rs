//! Fits, with callbacks and interruptions.

use crate::agents::{Fitted, linear, parsed};
use crate::contexts::{accepted, matrix_rows};
use crate::demonstrations::GivenDemonstrations;
use crate::errors::{of_family, raised};
use crate::experts::{GivenExpert, Raised, first_raised};
use crate::model::{Model, from_json, to_json};
use crate::threads::{Stop, stoppable};
use coirl::baselines::NeuralCloning;
use coirl::demos::{Demonstration, Estimator, Expert, Train, Validation};
use coirl::learn::{Neural, Problem, Record, Recorder, Snapshot, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{self, Checkpoint, Settings};
use coirl::score::Examination;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The resolved settings, as they are saved: what was given, and defaults for the rest.
#[pyfunction]
pub(crate) fn default_settings(py: Python<'_>, settings: &str) -> PyResult<String> {
    to_json(&from_json::<Settings>(py, "settings", settings)?)
}

/// Every registered method: what it is called in files and on the command line, when to choose it, and its default settings.
#[pyfunction]
pub(crate) fn registry() -> PyResult<String> {
    let described = methods::methods().map(|entry| {
        let method = (entry.method)();
        serde_json::json!({
            "name": entry.name,
            "about": entry.about,
            "interactive": entry.is_interactive(),
            "stream": method.is_stream(),
            "settings": method.defaults(),
        })
    });
    to_json(&described.collect::<Vec<_>>())
}

/// Settings of a method as the paper has them.
#[pyfunction]
pub(crate) fn preset(py: Python<'_>, name: &str) -> PyResult<String> {
    match name {
        "neural_paper" => to_json(&Neural::paper()),
        "neural_paper_patients" => to_json(&Neural::paper_patients()),
        "neural_cloning_paper_patients" => to_json(&NeuralCloning::paper_patients()),
        _ => Err(of_family(py, "SettingError", format!("there is no preset {name:?}"))),
    }
}

/// Looks on at a run: tells the callback, and stops where it or a signal says so.
struct Watching {
    stop: Stop,
    callback: Option<Py<PyAny>>,
    raised: Raised,
    checkpoint: Option<Checkpoint>,
    wants_checkpoint: bool,
    last: u64,
}

impl Recorder for Watching {
    fn begin(&mut self, steps: Option<u64>) {
        self.last = steps.unwrap_or(u64::MAX);
    }

    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        let mut flow = if self.stop.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if let Some(callback) = &self.callback {
            let told = Python::attach(|py| {
                let answer = callback.bind(py).call1((parsed(py, record)?,))?;
                Ok::<_, PyErr>(answer.is_none() || answer.is_truthy()?)
            });
            match told {
                Ok(true) => {}
                Ok(false) => flow = ControlFlow::Break(()),
                Err(error) => {
                    self.raised.keep(error);
                    flow = ControlFlow::Break(());
                }
            }
        }
        self.last = self.last.saturating_sub(1);
        // A rule may end the run at any step with a record.
        if self.wants_checkpoint && (flow.is_break() || self.last == 0 || record.loss.is_some()) {
            self.checkpoint = Some(snapshot.checkpoint()?);
        }
        Ok(flow)
    }
}

/// Who is asked, as Python passes it.
#[derive(FromPyObject)]
pub(crate) enum PassedExpert<'py> {
    /// A mapping, what is tolerated, how far from the mapping a query's may be, roll-outs and their length, the seed.
    Simulated(PyReadonlyArray2<'py, f64>, f64, f64, Option<(usize, usize)>, u64),
    Asked(Bound<'py, PyAny>),
}

/// Why an estimator is refused, and where there is a use for it.
fn unused_estimator(settings: &Settings) -> String {
    let with = methods::methods().filter(|entry| (entry.method)().uses_expectations()).map(|entry| entry.name);
    let with = with.collect::<Vec<_>>().join(", ");
    let own = settings.method.name();
    format!(
        "estimator: {own} with these settings uses no feature expectations, and so no estimator of them; these do: {with}"
    )
}

/// Learns. `demonstrations` have feature expectations, trajectories, or (with an expert) contexts only.
#[pyfunction]
#[pyo3(signature = (model, demonstrations, settings, estimator, validation, truth, expert, callback, from_))]
#[allow(clippy::too_many_arguments)] // what can be said about a fit
pub(crate) fn fit(
    py: Python<'_>,
    model: &Model,
    demonstrations: GivenDemonstrations<'_>,
    settings: &str,
    estimator: &str,
    validation: Option<GivenDemonstrations<'_>>,
    truth: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray2<'_, f64>)>,
    expert: Option<PassedExpert<'_>>,
    callback: Option<Py<PyAny>>,
    from_: Option<PyRef<'_, Fitted>>,
) -> PyResult<(Fitted, Option<PyErr>)> {
    let settings: Settings = from_json(py, "settings", settings)?;
    let estimator: Option<Estimator> = from_json(py, "estimator", estimator)?;
    if estimator.is_some() && !settings.method.uses_expectations() {
        return Err(of_family(py, "SettingError", unused_estimator(&settings)));
    }
    let exception = Raised::default();
    let expert = match expert {
        None => None,
        Some(PassedExpert::Simulated(values, tolerance, radius, trajectories, seed)) => {
            let truth = linear(py, &values)?;
            Some(GivenExpert::Simulated { truth, tolerance, radius, trajectories, seed })
        }
        Some(PassedExpert::Asked(callable)) => {
            Some(GivenExpert::Asked { callable: callable.unbind(), raised: exception.clone() })
        }
    };
    let task = Task {
        contexts_only: demonstrations.has_contexts_only(),
        contexts: demonstrations.contexts()?,
        demonstrations: demonstrations.read()?,
        validation: validation.map(|given| given.read()).transpose()?,
        truth: match truth {
            Some((values, contexts)) => Some((linear(py, &values)?, matrix_rows(&contexts)?)),
            None => None,
        },
        expert,
        settings,
        estimator,
        from: from_.and_then(|fitted| fitted.checkpoint.clone()),
    };
    let stop = Stop::default();
    let mut watching = Watching {
        stop: stop.clone(),
        callback,
        raised: exception.clone(),
        checkpoint: None,
        wants_checkpoint: task.can_go_on(),
        last: u64::MAX,
    };
    let own = model.0.clone();
    let (done, signalled) = stoppable(py, &stop, move || {
        let fitted = task.run(&own, &mut watching)?;
        Ok((fitted, watching.checkpoint))
    })?;
    match done {
        // What was learned before an interruption is not lost.
        Ok((fitted, checkpoint)) => {
            let fitted = Fitted { fitted: Arc::new(fitted), checkpoint: checkpoint.map(Arc::new) };
            Ok((fitted, signalled.or_else(|| exception.take())))
        }
        Err(coirl::Error::Interrupted { .. }) => Err(signalled.unwrap_or_else(|| first_raised(&exception))),
        Err(error) => Err(raised(py, error)),
    }
}

/// A fit with all it needs.
struct Task {
    contexts_only: bool,
    contexts: Vec<Vec<f64>>,
    demonstrations: crate::demonstrations::RawDemonstrations,
    validation: Option<crate::demonstrations::RawDemonstrations>,
    truth: Option<(LinearMapping, Vec<Vec<f64>>)>,
    expert: Option<GivenExpert>,
    settings: Settings,
    estimator: Option<Estimator>,
    from: Option<Arc<Checkpoint>>,
}

impl Task {
    /// Whether what the method keeps does not depend on which demonstrations it saw, so that it can go on with others.
    fn can_go_on(&self) -> bool {
        self.settings.method.is_stream()
    }

    fn run(self, model: &coirl::model::Cmdp, watching: &mut Watching) -> coirl::Result<coirl::methods::Fitted> {
        let expert: Option<Box<dyn Expert>> = self.expert.map(|expert| expert.of(model)).transpose()?;
        let problem = match (&expert, self.contexts_only) {
            (Some(expert), true) => Problem::interactive(model, accepted(model, self.contexts)?, &**expert)?,
            (expert, _) => {
                let demonstrations: Vec<Demonstration> = self.demonstrations.checked(model)?;
                let problem = Problem::new(model, &Train::new(demonstrations), self.estimator.as_ref())?;
                match expert {
                    Some(expert) => problem.with_expert(&**expert),
                    None => problem,
                }
            }
        };
        let validation = match self.validation {
            Some(given) => {
                let validation = Validation::new(given.checked(model)?);
                Some(Problem::validation(model, &validation, self.estimator.as_ref())?)
            }
            None => None,
        };
        let examination = match self.truth {
            Some((truth, contexts)) => Some(Examination::new(model, &truth, accepted(model, contexts)?)?),
            None => None,
        };
        let watch = Watch { examination: examination.as_ref(), validation: validation.as_ref() };
        match self.from {
            None => methods::fit(&problem, &self.settings, watch, watching),
            Some(checkpoint) => {
                // The stream goes on: what was kept, with what has come since.
                let mut going_on = Checkpoint::clone(&checkpoint);
                going_on.digest = problem.digest();
                going_on.settings = self.settings;
                going_on.settings.stop.max_steps =
                    Some(checkpoint.step + going_on.settings.stop.max_steps.unwrap_or(problem.len() as u64));
                methods::resume(&problem, going_on, watch, watching)
            }
        }
    }
}
