//! Planning and evaluation as methods of a model.

use crate::arrays::{matrix, numbers, rows, vector};
use crate::contexts::{self, accepted, matrix_rows};
use crate::errors::raised;
use crate::model::{Model, from_json};
use crate::policies::{self, GivenPolicy};
use crate::threads::{Stop, at_once, on_threads, on_threads_until};
use coirl::contextual::plan_contexts;
use coirl::demos::Trajectory;
use coirl::model::{Mdp, Pairs, Reward, StateId};
use coirl::plan::{
    Accuracy, Certificate, Limits, ManyOptions, Method, Plan, PlannedReward, Planner, Policy, Start, evaluate,
};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ops::ControlFlow;

/// Stored probabilities up to which a plan is made at once: it takes less time than to look for signals.
const SHORT: usize = 20_000;

/// What is to be planned for.
enum GivenReward {
    Weights(Vec<f64>),
    States(Vec<f64>),
    /// `[S, A]`; actions that cannot be taken are not looked at.
    Pairs(usize, usize, Vec<f64>),
}

impl GivenReward {
    /// Weights `[k]`, or rewards `[S]` or `[S, A]`.
    fn read(
        weights: Option<&PyReadonlyArray1<'_, f64>>,
        by_state: Option<&PyReadonlyArray1<'_, f64>>,
        by_pair: Option<&PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Option<Self>> {
        Ok(match (weights, by_state, by_pair) {
            (Some(weights), _, _) => Some(Self::Weights(numbers(weights)?.to_vec())),
            (None, Some(reward), _) => Some(Self::States(numbers(reward)?.to_vec())),
            (None, None, Some(reward)) => {
                Some(Self::Pairs(reward.shape()[0], reward.shape()[1], rows(reward)?.to_vec()))
            }
            (None, None, None) => None,
        })
    }

    fn of(self, mdp: &Mdp<'_>) -> coirl::Result<Reward> {
        let pairs = mdp.pairs();
        match self {
            Self::Weights(weights) => mdp.reward(&weights),
            Self::States(values) => Reward::per_state(values),
            Self::Pairs(n_states, n_actions, values) => {
                if (n_states, n_actions) != (pairs.n_states(), pairs.n_actions()) {
                    return Err(coirl::Error::Shape {
                        what: "reward",
                        expected: format!("[{}] or [{}, {}]", pairs.n_states(), pairs.n_states(), pairs.n_actions()),
                        found: format!("[{n_states}, {n_actions}]"),
                    });
                }
                let of_pair = |pair| values[pairs.state(pair).index() * n_actions + pairs.action(pair).index()];
                Ok(Reward::Pair((0..pairs.len()).map(of_pair).collect()))
            }
        }
    }
}

fn planner(py: Python<'_>, method: &str, tolerance: Option<f64>, max_sweeps: Option<usize>) -> PyResult<Planner> {
    let method: Method = from_json(py, "method", method)?;
    let accuracy = tolerance.map_or(Accuracy::Exact, Accuracy::Tolerance);
    let limits = max_sweeps.map_or(Limits::default(), |max_sweeps| Limits { max_sweeps });
    Ok(Planner { method, accuracy, limits, ..Planner::default() })
}

fn certificate<'py>(py: Python<'py>, own: &Certificate) -> PyResult<Bound<'py, PyDict>> {
    let status = serde_json::to_value(own.status).ok();
    let dict = PyDict::new(py);
    dict.set_item("status", status.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default())?;
    dict.set_item("residual", own.residual)?;
    dict.set_item("suboptimality_bound", own.suboptimality_bound)?;
    dict.set_item("value_error_bound", own.value_error_bound)?;
    dict.set_item("sweeps", own.sweeps)?;
    Ok(dict)
}

#[pymethods]
impl Model {
    /// Plans for one reward in one context.
    #[pyo3(signature = (weights, by_state, by_pair, context, method, tolerance, max_sweeps, start, expectations))]
    #[allow(clippy::too_many_arguments)] // what can be said about a plan
    fn plan<'py>(
        &self,
        py: Python<'py>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        by_state: Option<PyReadonlyArray1<'_, f64>>,
        by_pair: Option<PyReadonlyArray2<'_, f64>>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        method: &str,
        tolerance: Option<f64>,
        max_sweeps: Option<usize>,
        start: Option<PyReadonlyArray1<'_, f64>>,
        expectations: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let planner = planner(py, method, tolerance, max_sweeps)?;
        let given = GivenReward::read(weights.as_ref(), by_state.as_ref(), by_pair.as_ref())?;
        let given = given.ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("expected weights or a reward"))?;
        let context = contexts::one(context)?;
        let start = contexts::one(start)?;
        let model = self.0.clone();
        let short = match model.dynamics() {
            coirl::model::Dynamics::Shared(kernel) => kernel.n_entries() < SHORT,
            _ => false,
        };
        let work = move || {
            let mdp = contexts::mdp(&model, context)?;
            let reward = given.of(&mdp)?;
            let start = start.as_deref().map_or(Start::Cold, Start::Values);
            let plan = planner.plan_from(&mdp, &reward, start)?;
            let mu = expectations.then(|| evaluate::feature_expectations(&mdp, &plan.policy)).transpose()?;
            Ok((plan, mu))
        };
        let (plan, mu) = if short { at_once(py, work)? } else { on_threads(py, work)? };
        let Plan { policy, values, value, certificate: own, way } = plan;
        let dict = PyDict::new(py);
        dict.set_item("policy", policies::array(py, self.0.pairs(), &policy)?)?;
        dict.set_item("values", vector(py, values))?;
        dict.set_item("value", value)?;
        dict.set_item("feature_expectations", mu.map(|mu| vector(py, mu)))?;
        dict.set_item("certificate", certificate(py, &own)?)?;
        dict.set_item("way", way.to_string())?;
        Ok(dict)
    }

    /// Plans for every row of weights, in one context or in a context each. Returns arrays.
    #[pyo3(signature = (weights, contexts, shared_context, method, tolerance, max_sweeps, policies, values, expectations))]
    #[allow(clippy::too_many_arguments)] // what can be said about plans
    fn plan_many<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray2<'_, f64>,
        contexts: Option<PyReadonlyArray2<'_, f64>>,
        shared_context: Option<PyReadonlyArray1<'_, f64>>,
        method: &str,
        tolerance: Option<f64>,
        max_sweeps: Option<usize>,
        policies: bool,
        values: bool,
        expectations: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let planner = planner(py, method, tolerance, max_sweeps)?;
        let (n, k) = (weights.shape()[0], weights.shape()[1]);
        if k != self.0.n_features() {
            let expected = format!("[any number, {}]", self.0.n_features());
            let found = format!("[{n}, {k}]");
            return Err(raised(py, coirl::Error::Shape { what: "weights", expected, found }));
        }
        let weights = rows(&weights)?.to_vec();
        let contexts = contexts.as_ref().map(matrix_rows).transpose()?;
        let shared_context = contexts::one(shared_context)?;
        let model = self.0.clone();
        let stop = Stop::default();
        let asked = stop.clone();
        let kept = on_threads_until(py, &stop, move || {
            let mut kept = Kept { wants_policies: policies, ..Kept::default() };
            let options = ManyOptions { feature_expectations: expectations, values };
            let sink = |planned: PlannedReward| {
                kept.keep(planned);
                if asked.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            match contexts {
                Some(rows) => plan_contexts(&model, &accepted(&model, rows)?, &weights, &planner, options, sink)?,
                None => planner.plan_many(&contexts::mdp(&model, shared_context)?, &weights, options, sink)?,
            }
            Ok(kept)
        })?;
        kept.arrays(py, self.0.pairs(), n, k)
    }

    /// What a policy is worth and where it leads.
    #[pyo3(signature = (policy, weights, by_state, by_pair, context, successor_features))]
    #[allow(clippy::too_many_arguments)] // what can be said about an evaluation
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        policy: &Bound<'_, PyAny>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        by_state: Option<PyReadonlyArray1<'_, f64>>,
        by_pair: Option<PyReadonlyArray2<'_, f64>>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        successor_features: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let given = GivenPolicy::read(policy)?;
        let reward = GivenReward::read(weights.as_ref(), by_state.as_ref(), by_pair.as_ref())?;
        let context = contexts::one(context)?;
        let model = self.0.clone();
        let (occupancy, mu, worth, psi) = on_threads(py, move || {
            let mdp = contexts::mdp(&model, context)?;
            let policy = given.checked(mdp.pairs())?;
            let occupancy = evaluate::occupancy(&mdp, &policy)?;
            let mu = occupancy.feature_expectations(mdp.features(), mdp.pairs());
            let worth = match reward {
                Some(reward) => {
                    let reward = reward.of(&mdp)?;
                    let values = evaluate::values(&mdp, &reward, &policy)?;
                    let value = evaluate::value(&mdp, &reward, &policy)?;
                    // Of policies that change with time there is no one table.
                    let q = match policy {
                        Policy::Stationary(_) | Policy::Stochastic(_) => {
                            Some(dense(mdp.pairs(), &evaluate::q_values(&mdp, &reward, &values)?))
                        }
                        Policy::Staged(_) | Policy::StagedStochastic(_) => None,
                    };
                    Some((value, values, q))
                }
                None => None,
            };
            let psi = successor_features.then(|| evaluate::successor_features(&mdp, &policy)).transpose()?;
            Ok((occupancy.of_states(mdp.pairs()), mu, worth, psi))
        })?;
        let (n_states, n_actions) = (self.0.n_states(), self.0.n_actions());
        let dict = PyDict::new(py);
        dict.set_item("feature_expectations", vector(py, mu))?;
        dict.set_item("occupancy", vector(py, occupancy))?;
        if let Some((value, values, q)) = worth {
            dict.set_item("value", value)?;
            dict.set_item("values", vector(py, values))?;
            dict.set_item("q_values", q.map(|q| matrix(py, n_states, n_actions, q)).transpose()?)?;
        }
        if let Some(psi) = psi {
            dict.set_item("successor_features", matrix(py, n_states, self.0.n_features(), psi)?)?;
        }
        Ok(dict)
    }

    /// Every known action with equal probability.
    fn random_policy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        policies::array(py, self.0.pairs(), &self.0.random_policy())
    }

    /// Trajectories of a policy: a list of (states, actions).
    #[pyo3(signature = (policy, context, start, n, transitions, geometric, seed, first))]
    #[allow(clippy::too_many_arguments)] // what can be said about roll-outs
    fn sample<'py>(
        &self,
        py: Python<'py>,
        policy: &Bound<'_, PyAny>,
        context: Option<PyReadonlyArray1<'_, f64>>,
        start: Option<u32>,
        n: usize,
        transitions: usize,
        geometric: bool,
        seed: u64,
        first: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        let given = GivenPolicy::read(policy)?;
        let context = contexts::one(context)?;
        let model = self.0.clone();
        let paths = on_threads(py, move || {
            let mut mdp = contexts::mdp(&model, context)?;
            if let Some(state) = start {
                mdp = mdp.starting_in(StateId(state))?;
            }
            let policy = given.checked(mdp.pairs())?;
            let path = |i: usize| match geometric {
                true => Trajectory::sample_geometric(&mdp, &policy, seed, first + i as u64),
                false => Trajectory::sample(&mdp, &policy, transitions, seed, first + i as u64),
            };
            (0..n).map(path).collect::<coirl::Result<Vec<_>>>()
        })?;
        let list = PyList::empty(py);
        for path in paths {
            let states = vector(py, path.states.iter().map(|state| i64::from(state.0)).collect());
            let actions = vector(py, path.actions.iter().map(|action| i64::from(action.0)).collect());
            list.append((states, actions))?;
        }
        Ok(list)
    }
}

/// `[S, A]` from numbers by pair; not a number where an action cannot be taken.
fn dense(pairs: &Pairs, values: &[f64]) -> Vec<f64> {
    let mut table = vec![f64::NAN; pairs.n_states() * pairs.n_actions()];
    for (pair, value) in values.iter().enumerate() {
        table[pairs.state(pair).index() * pairs.n_actions() + pairs.action(pair).index()] = *value;
    }
    table
}

/// Results of many plans, as they come.
#[derive(Default)]
struct Kept {
    wants_policies: bool,
    policies: Vec<Policy>,
    value: Vec<f64>,
    values: Vec<f64>,
    expectations: Vec<f64>,
    certificates: Vec<Certificate>,
}

impl Kept {
    fn keep(&mut self, planned: PlannedReward) {
        if self.wants_policies {
            self.policies.push(planned.policy);
        }
        self.value.push(planned.value);
        self.values.extend(planned.values.unwrap_or_default());
        self.expectations.extend(planned.feature_expectations.unwrap_or_default());
        self.certificates.push(planned.certificate);
    }

    fn arrays<'py>(self, py: Python<'py>, pairs: &Pairs, n: usize, k: usize) -> PyResult<Bound<'py, PyDict>> {
        let n_states = pairs.n_states();
        let dict = PyDict::new(py);
        let stationary: Option<Vec<&[coirl::model::ActionId]>> = self.policies.iter().map(Policy::actions).collect();
        match stationary {
            Some(all) if self.wants_policies => {
                let numbers = all.into_iter().flatten().map(|action| i64::from(action.0)).collect();
                dict.set_item("policies", matrix(py, n, n_states, numbers)?)?;
            }
            None => {
                let each = self.policies.iter().map(|policy| policies::array(py, pairs, policy));
                dict.set_item("policies", each.collect::<PyResult<Vec<_>>>()?)?;
            }
            Some(_) => dict.set_item("policies", py.None())?,
        }
        dict.set_item("value", vector(py, self.value))?;
        let some = |values: Vec<f64>, width: usize| match values.is_empty() {
            true => Ok(None),
            false => matrix(py, n, width, values).map(Some),
        };
        dict.set_item("values", some(self.values, n_states)?)?;
        dict.set_item("feature_expectations", some(self.expectations, k)?)?;
        let of = |number: fn(&Certificate) -> f64| vector(py, self.certificates.iter().map(number).collect());
        dict.set_item("residual", of(|own| own.residual))?;
        dict.set_item("suboptimality_bound", of(|own| own.suboptimality_bound))?;
        dict.set_item("value_error_bound", of(|own| own.value_error_bound))?;
        let sweeps = self.certificates.iter().map(|own| own.sweeps as i64).collect();
        dict.set_item("sweeps", vector::<i64>(py, sweeps))?;
        let limited = self.certificates.iter().map(|own| own.status == coirl::plan::Status::SweepLimit).collect();
        dict.set_item("sweep_limit", vector::<bool>(py, limited))?;
        Ok(dict)
    }
}
