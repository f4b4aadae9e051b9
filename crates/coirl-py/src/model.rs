//! Models: kernels, and the contextual process itself.

use crate::arrays::{matrix, numbers, rows, vector};
use crate::contexts::{self, accepted, matrix_rows};
use crate::errors::{of_family, raised};
use crate::threads::at_once;
use coirl::artifact::{read_model, write_model};
use coirl::model::{Clusters, Cmdp, ContextSpace, Criterion, Dynamics, Features, Mixture, Names, SparseRows};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// P(s' | s, a), checked.
#[pyclass(frozen, module = "coirl._coirl")]
pub(crate) struct Kernel(coirl::model::Kernel);

#[pymethods]
impl Kernel {
    /// From `[s, a, s']`.
    #[staticmethod]
    #[pyo3(signature = (transitions, admissible))]
    fn from_dense(
        py: Python<'_>,
        transitions: PyReadonlyArray3<'_, f64>,
        admissible: Option<PyReadonlyArray2<'_, bool>>,
    ) -> PyResult<Self> {
        let [n_states, n_actions, n_next] = transitions.shape()[..] else { return Err(not_three()) };
        if n_next != n_states {
            let found = format!("{:?}", transitions.shape());
            let expected = "[states, actions, states]".into();
            return Err(raised(py, coirl::Error::Shape { what: "transitions", expected, found }));
        }
        let mask = admissible.as_ref().map(rows).transpose()?;
        let values = transitions.as_slice().map_err(|_| not_three())?;
        at_once(py, || coirl::model::Kernel::from_dense(n_states, n_actions, values, mask)).map(Self)
    }

    /// From compressed rows numbered `s * n_actions + a`.
    #[staticmethod]
    #[pyo3(signature = (n_states, n_actions, indptr, indices, data, admissible))]
    fn from_csr(
        py: Python<'_>,
        n_states: usize,
        n_actions: usize,
        indptr: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, i64>,
        data: PyReadonlyArray1<'_, f64>,
        admissible: Option<PyReadonlyArray2<'_, bool>>,
    ) -> PyResult<Self> {
        let mask = admissible.as_ref().map(rows).transpose()?;
        let starts: Vec<usize> = numbers(&indptr)?
            .iter()
            .map(|&i| usize::try_from(i))
            .collect::<Result<_, _>>()
            .map_err(|_| of_family(py, "ArrayError", "indptr has a negative entry; expected row starts"))?;
        let (indices, data) = (numbers(&indices)?, numbers(&data)?);
        at_once(py, || coirl::model::Kernel::from_csr(n_states, n_actions, &starts, indices, data, mask)).map(Self)
    }

    #[getter]
    fn n_states(&self) -> usize {
        self.0.n_states()
    }

    #[getter]
    fn n_actions(&self) -> usize {
        self.0.n_actions()
    }
}

fn not_three() -> PyErr {
    pyo3::exceptions::PyTypeError::new_err("expected a contiguous array of three dimensions")
}

/// A contextual process without its reward mapping.
#[pyclass(frozen, module = "coirl._coirl")]
pub(crate) struct Model(pub(crate) Arc<Cmdp>);

/// Columns, row starts, and the column and value of every entry.
type CompressedRows<'py> = (usize, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>);

/// JSON as Python passes it, or the exception that says what is wrong with it.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(py: Python<'_>, what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| of_family(py, "SettingError", format!("{what}: {error}")))
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| crate::errors::internal(error.to_string()))
}

impl Model {
    pub(crate) fn new(model: Cmdp) -> Self {
        Self(Arc::new(model))
    }
}

#[pymethods]
impl Model {
    /// One kernel for all contexts; with several a mixture, or with centroids a kernel for each cluster of contexts. Features are dense rows
    /// per state, or sparse rows `(n_features, indptr, indices, data)` per admissible pair.
    #[new]
    #[pyo3(signature = (kernels, centroids, state_features, pair_features, initial, criterion, space, names, known))]
    #[allow(clippy::too_many_arguments)] // the parts of a model
    fn build(
        py: Python<'_>,
        kernels: Vec<PyRef<'_, Kernel>>,
        centroids: Option<PyReadonlyArray2<'_, f64>>,
        state_features: Option<PyReadonlyArray2<'_, f64>>,
        pair_features: Option<CompressedRows<'_>>,
        initial: PyReadonlyArray1<'_, f64>,
        criterion: &str,
        space: Option<&str>,
        names: &str,
        known: Option<PyReadonlyArray2<'_, bool>>,
    ) -> PyResult<Self> {
        let criterion: Criterion = from_json(py, "criterion", criterion)?;
        let space: Option<ContextSpace> = space.map(|text| from_json(py, "context space", text)).transpose()?;
        let names: Names = from_json(py, "names", names)?;
        let mut kernels: Vec<coirl::model::Kernel> = kernels.iter().map(|kernel| kernel.0.clone()).collect();
        let centroids = centroids.as_ref().map(matrix_rows).transpose()?;
        let initial = numbers(&initial)?.to_vec();
        let dense = match &state_features {
            Some(values) => Some((values.shape()[0], values.shape()[1], rows(values)?.to_vec())),
            None => None,
        };
        let sparse = match &pair_features {
            Some((n, indptr, indices, data)) => {
                let natural = |array: &[i64]| array.iter().map(|&i| usize::try_from(i)).collect::<Result<Vec<_>, _>>();
                let bad = |_| of_family(py, "ArrayError", "features have a negative index; expected compressed rows");
                let starts = natural(numbers(indptr)?).map_err(bad)?;
                let columns = natural(numbers(indices)?).map_err(bad)?;
                let columns = columns.into_iter().map(|j| u32::try_from(j).unwrap_or(u32::MAX)).collect();
                Some((*n, starts, columns, numbers(data)?.to_vec()))
            }
            None => None,
        };
        let known = known.as_ref().map(rows).transpose()?.map(<[bool]>::to_vec);
        at_once(py, move || {
            let dynamics = match (kernels.len(), centroids) {
                (_, Some(centroids)) => Dynamics::Clusters(Clusters::new(kernels, centroids)?),
                (1, None) => Dynamics::Shared(kernels.remove(0)),
                (_, None) => Dynamics::Mixture(Mixture::new(&kernels)?),
            };
            let pairs = dynamics.pairs().clone();
            let features = match (dense, sparse) {
                (Some((n_states, n_features, values)), _) => Features::per_state(n_states, n_features, values)?,
                (None, Some((n, starts, columns, values))) => {
                    Features::per_pair(&pairs, SparseRows::new(n, starts, columns, values)?)?
                }
                (None, None) => Features::indicators(&pairs)?,
            };
            let mut model = Cmdp::new(dynamics, features, initial, criterion)?;
            if let Some(space) = space {
                model = model.with_context_space(space)?;
            }
            if let Some(known) = known {
                let of_pair = |pair: usize| {
                    known.get(pairs.state(pair).index() * pairs.n_actions() + pairs.action(pair).index()) == Some(&true)
                };
                model = model.with_known_pairs((0..pairs.len()).map(of_pair).collect())?;
            }
            model.with_names(names)
        })
        .map(Self::new)
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        at_once(py, || read_model(&path)).map(Self::new)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        at_once(py, || write_model(&path, &self.0))
    }

    #[getter]
    fn n_states(&self) -> usize {
        self.0.n_states()
    }

    #[getter]
    fn n_actions(&self) -> usize {
        self.0.n_actions()
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    #[getter]
    fn n_pairs(&self) -> usize {
        self.0.pairs().len()
    }

    /// Which dynamics: `shared`, `mixture` or `clusters`.
    #[getter]
    fn dynamics(&self) -> &'static str {
        match self.0.dynamics() {
            Dynamics::Shared(_) => "shared",
            Dynamics::Mixture(_) => "mixture",
            Dynamics::Clusters(_) => "clusters",
        }
    }

    fn criterion(&self) -> PyResult<String> {
        to_json(&self.0.criterion())
    }

    fn context_space(&self) -> PyResult<String> {
        to_json(self.0.context_space())
    }

    fn names(&self) -> PyResult<String> {
        to_json(self.0.names())
    }

    fn initial<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, self.0.initial().to_vec())
    }

    fn admissible<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<bool>>> {
        matrix(py, self.0.n_states(), self.0.n_actions(), self.0.pairs().mask())
    }

    /// Which actions are known, as `admissible`.
    fn known<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<bool>>> {
        let pairs = self.0.pairs();
        let mut mask = vec![false; pairs.n_states() * pairs.n_actions()];
        for pair in (0..pairs.len()).filter(|&pair| self.0.is_known(pair)) {
            mask[pairs.state(pair).index() * pairs.n_actions() + pairs.action(pair).index()] = true;
        }
        matrix(py, pairs.n_states(), pairs.n_actions(), mask)
    }

    /// Features per state `[S, k]`; nothing where they depend on the action.
    fn state_features<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        match self.0.features() {
            Features::State { n_features, values } => {
                matrix(py, self.0.n_states(), *n_features, values.clone()).map(Some)
            }
            Features::StateAction(_) => Ok(None),
        }
    }

    /// φ of a state and an action.
    fn feature_row<'py>(&self, py: Python<'py>, state: usize, action: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let pair = (state < self.0.n_states())
            .then(|| self.0.pairs().find(state, action))
            .flatten()
            .ok_or_else(|| raised(py, coirl::Error::ActionNotAdmissible { state, action: action as i64 }))?;
        let mut row = vec![0.0; self.0.n_features()];
        match self.0.features() {
            Features::State { n_features, values } => {
                row.copy_from_slice(&values[state * n_features..(state + 1) * n_features]);
            }
            Features::StateAction(rows) => rows.row(pair).for_each(|(j, x)| row[j] = x),
        }
        Ok(vector(py, row))
    }

    /// The kernel of a context in compressed rows numbered `s * n_actions + a`, empty where an action cannot be taken.
    #[pyo3(signature = (context))]
    #[allow(clippy::type_complexity)] // the three arrays of compressed rows
    fn transitions<'py>(
        &self,
        py: Python<'py>,
        context: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>)> {
        let context = contexts::one(context)?;
        let (indptr, indices, data) = at_once(py, || {
            let mdp = contexts::mdp(&self.0, context)?;
            let (kernel, pairs) = (mdp.kernel(), mdp.pairs());
            let mut indptr = vec![0_i64];
            let (mut indices, mut data) = (Vec::new(), Vec::new());
            for state in 0..pairs.n_states() {
                for action in 0..pairs.n_actions() {
                    if let Some(pair) = pairs.find(state, action) {
                        for (next, p) in kernel.successors(pair) {
                            indices.push(next as i64);
                            data.push(p);
                        }
                    }
                    indptr.push(indices.len() as i64);
                }
            }
            Ok((indptr, indices, data))
        })?;
        Ok((vector(py, indptr), vector(py, indices), vector(py, data)))
    }

    /// The vector as a context of this model, or why it is none.
    fn check_contexts(&self, py: Python<'_>, values: PyReadonlyArray2<'_, f64>) -> PyResult<()> {
        let values = matrix_rows(&values)?;
        at_once(py, || accepted(&self.0, values).map(|_| ()))
    }

    fn sample_contexts<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let drawn = at_once(py, || self.0.context_space().sample(n, seed))?;
        let d = drawn.first().map_or(0, |context| context.values().len());
        matrix(py, n, d, drawn.iter().flat_map(|context| context.values()).copied().collect())
    }

    /// Bytes of the model file, for pickling.
    fn to_bytes(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        at_once(py, || {
            let io = |source| coirl::Error::Io { path: PathBuf::from("a temporary file"), source };
            let folder = tempfile::tempdir().map_err(io)?;
            let path = folder.path().join("model.safetensors");
            write_model(&path, &self.0)?;
            std::fs::read(&path).map_err(io)
        })
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        at_once(py, || {
            let io = |source| coirl::Error::Io { path: PathBuf::from("a temporary file"), source };
            let folder = tempfile::tempdir().map_err(io)?;
            let path = folder.path().join("model.safetensors");
            std::fs::write(&path, bytes).map_err(io)?;
            read_model(&path)
        })
        .map(Self::new)
    }
}
