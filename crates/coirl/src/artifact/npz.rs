//! Models as NumPy users write them: an archive of arrays under the keys below.
//!
//! | key | shape | meaning |
//! |---|---|---|
//! | `transitions` | `[s, a, s']` | P(s' \| s, a), dense |
//! | `indptr`, `indices`, `data` | CSR | the same in compressed rows numbered `s * A + a`, as SciPy holds them |
//! | `n_actions` or `shape` | scalar, `[2]` | number of actions A, or SciPy's `[S * A, S]`; else A = rows / states |
//! | `kernels` | `[d, s, a, s']` | base kernels of a mixture, or one per cluster, dense |
//! | `indptr_0`, `indices_0`, `data_0`, … | CSR | the same in compressed rows |
//! | `centroids` | `[n, d]` | makes the kernels those of clusters of contexts |
//! | `admissible` | `[s, a]` | which actions may be taken; default: all. Other rows are not looked at |
//! | `known` | `[s, a]` | which admissible pairs people take and know the consequences of; default: all |
//! | `features` | `[s, k]` or `[s, a, k]` | φ |
//! | `features_indptr`, `features_indices`, `features_data`, `n_features` | CSR | φ(s, a) in rows `s * A + a` |
//! | `initial` | `[s]` | start distribution |
//! | `discount` | scalar | γ; 1 means total reward until absorption |
//! | `horizon` | scalar | number of decisions of a finite horizon |
//! | `criterion` | string | `average`, instead of `discount` |
//! | `context_space` | string | where contexts live, as JSON |
//! | `context_lower`, `context_upper` | `[d]` | the same, for a box |
//! | `names` | string | what the parts are called, as JSON |
//!
//! Integers and floats of any width and byte order, in C or Fortran order, are converted where that is exact. Rows in
//! single precision may miss one by as much as that leaves, and are scaled.
//!
//! The `dynamics.npz` of the ICU-Sepsis package is read as well: `tx_mat` stands for `transitions` and `d_0` for `initial`;
//! the one feature, "survival", is what `r_mat` pays for entering a state; and the discount is 1, as the package's. There the
//! return is that of the package. (At lower discounts it is one step's discount below it, since a state feature is
//! collected in the state and not on the way into it.) `expert_policy`, `state_cluster_centers` and `sofa_scores` are no
//! part of a model and ignored. Any other key of the table may be added, such as `admissible`.

use super::archive::{Archive, ArchiveArray, ArchiveWriter};
use super::atomic::write_atomically;
use super::format_error;
use super::npy::Number;
use crate::error::{Error, Result};
use crate::model::{
    Clusters, Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, KernelBuilder, Layout, Mixture, Names, Pairs,
    SparseRows,
};
use crate::nearest::nearest;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

const KEYS: [&str; 25] = [
    "transitions",
    "indptr",
    "indices",
    "data",
    "shape",
    "n_actions",
    "kernels",
    "centroids",
    "admissible",
    "known",
    "features",
    "features_indptr",
    "features_indices",
    "features_data",
    "n_features",
    "initial",
    "discount",
    "horizon",
    "criterion",
    "context_space",
    "context_lower",
    "context_upper",
    "names",
    // Written by scipy.sparse.save_npz beside the matrix.
    "format",
    "_is_array",
];
/// Known in addition once `tx_mat` is there.
const SEPSIS_KEYS: [&str; 6] = ["tx_mat", "r_mat", "d_0", "expert_policy", "state_cluster_centers", "sofa_scores"];
/// Keys that are numbered when there are several kernels.
const CSR_KEYS: [&str; 3] = ["indptr", "indices", "data"];
const FEATURES_CSR_KEYS: [&str; 3] = ["features_indptr", "features_indices", "features_data"];

/// The largest number of dense entries that [`write`] prefers to compressed rows: half a megabyte, and easier to look at.
const MAX_DENSE_ENTRIES: usize = 1 << 16;

/// What is kept of a number that is not zero: itself and where it is.
type Entry = (f64, u32);

/// How far a start distribution in single precision may be from one.
const SINGLE_PRECISION_TOLERANCE: f64 = 1e-5;

/// Reads a model from an archive of `size` bytes.
pub(super) fn read(path: &Path, file: File, size: u64) -> Result<Cmdp> {
    let mut archive = Archive::open(path, file, size)?;
    read_archive(&mut archive).map_err(|error| error.in_file(path))
}

fn read_archive(archive: &mut Archive) -> Result<Cmdp> {
    let sepsis = archive.has("tx_mat");
    check_keys(archive, sepsis)?;
    let form = kernel_form(archive)?;
    let initial = read_initial(archive, if sepsis && !archive.has("initial") { "d_0" } else { "initial" })?;
    let (n_states, n_actions, row_start) = read_size(archive, form, initial.len())?;
    let pairs = Arc::new(read_pairs(archive, n_states, n_actions)?);
    let known = read_known(archive, &pairs)?;
    let dynamics = read_dynamics(archive, form, &pairs, row_start)?;
    let (features, default_names) = match &dynamics {
        Dynamics::Shared(kernel) if sepsis && !archive.keys().any(|key| key.starts_with("features")) => {
            let names = Names { model: "ICU-Sepsis".into(), features: vec!["survival".into()], ..Names::default() };
            (reward_as_feature(archive, kernel)?, names)
        }
        _ => (read_features(archive, &pairs)?, Names::default()),
    };
    let criterion = read_criterion(archive, sepsis.then_some(1.0))?;
    let context_space = read_context_space(archive)?;
    let names = read_json(archive, "names")?.unwrap_or(default_names);

    let mut model = Cmdp::new(dynamics, features, initial, criterion)?;
    if let Some(space) = context_space {
        model = model.with_context_space(space)?;
    }
    if let Some(known) = known {
        model = model.with_known_pairs(known)?;
    }
    model.with_names(names)
}

/// How the transition probabilities are given.
#[derive(Debug, Clone, Copy)]
enum KernelForm {
    /// One dense array under this key.
    Dense(&'static str),
    /// `kernels`.
    DenseSeveral,
    /// `indptr`, `indices`, `data`.
    Compressed,
    /// `indptr_0`, `indices_0`, `data_0`, `indptr_1`, …: one compressed kernel each.
    CompressedSeveral { n_kernels: usize },
}

impl KernelForm {
    /// The suffix of the keys of a compressed kernel.
    fn suffix(self, kernel: usize) -> String {
        if let KernelForm::CompressedSeveral { .. } = self { format!("_{kernel}") } else { String::new() }
    }
}

fn check_keys(archive: &Archive, sepsis: bool) -> Result<()> {
    let mut known = KEYS.to_vec();
    if sepsis {
        known.extend(SEPSIS_KEYS);
    }
    match archive.keys().find(|key| !known.contains(key) && kernel_number(key).is_none()) {
        Some(key) => {
            let meant = nearest(key, &known).unwrap_or_default();
            Err(format_error(archive.path(), format!("unknown key {key:?}; the nearest known key is {meant:?}")))
        }
        None => Ok(()),
    }
}

/// The number at the end of `indptr_3` and the like.
fn kernel_number(key: &str) -> Option<usize> {
    let (stem, number) = key.rsplit_once('_')?;
    let canonical = number.bytes().all(|b| b.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
    if CSR_KEYS.contains(&stem) && canonical { number.parse().ok() } else { None }
}

fn kernel_form(archive: &Archive) -> Result<KernelForm> {
    let n_kernels = archive.keys().filter(|key| key.starts_with("indptr_") && kernel_number(key).is_some()).count();
    let numbered = archive.keys().find(|key| kernel_number(key).is_some());
    let given: Vec<(&str, KernelForm)> = [
        archive.has("transitions").then_some(("transitions", KernelForm::Dense("transitions"))),
        archive.has("tx_mat").then_some(("tx_mat", KernelForm::Dense("tx_mat"))),
        archive.has("kernels").then_some(("kernels", KernelForm::DenseSeveral)),
        CSR_KEYS.into_iter().find(|key| archive.has(key)).map(|key| (key, KernelForm::Compressed)),
        numbered.map(|key| (key, KernelForm::CompressedSeveral { n_kernels })),
    ]
    .into_iter()
    .flatten()
    .collect();
    match given.as_slice() {
        [] => Err(archive.missing(&["transitions", "indptr", "kernels", "indptr_0"])),
        [(_, form)] => {
            if numbered.is_some() && n_kernels == 0 {
                return Err(archive.missing(&["indptr_0"]));
            }
            match archive.keys().find(|key| kernel_number(key).is_some_and(|number| number >= n_kernels)) {
                Some(key) => {
                    let reason = format!("key {key:?} skips a number: the file has {n_kernels} keys \"indptr_…\"");
                    Err(format_error(archive.path(), reason))
                }
                None => Ok(*form),
            }
        }
        [(first, _), (second, _), ..] => {
            let reason =
                format!("keys {first:?} and {second:?} both give transition probabilities; expected one of them");
            Err(format_error(archive.path(), reason))
        }
    }
}

fn read_initial(archive: &mut Archive, key: &str) -> Result<Vec<f64>> {
    let array = archive.array(key)?.vector()?;
    let single_precision = array.is_single_precision();
    let mut initial: Vec<f64> = array.numbers()?;
    let sum: f64 = initial.iter().sum();
    if single_precision && (sum - 1.0).abs() <= SINGLE_PRECISION_TOLERANCE {
        initial.iter_mut().for_each(|p| *p /= sum);
    }
    Ok(initial)
}

/// Number of states and of actions, and the row starts of a first compressed kernel, which tell them.
fn read_size(archive: &mut Archive, form: KernelForm, n_initial: usize) -> Result<(usize, usize, Vec<usize>)> {
    let key = match form {
        KernelForm::Dense(key) => key.to_owned(),
        KernelForm::DenseSeveral => "kernels".to_owned(),
        KernelForm::Compressed | KernelForm::CompressedSeveral { .. } => format!("indptr{}", form.suffix(0)),
    };
    let place = archive.place(&key);
    let (n_states, n_actions, row_start) = match (form, archive.array(&key)?) {
        (KernelForm::Compressed | KernelForm::CompressedSeveral { .. }, array) => {
            let row_start = read_row_starts(array)?;
            let n_rows = row_start.len() - 1;
            if n_initial == 0 || !n_rows.is_multiple_of(n_initial) {
                return Err(place.refuse(format_args!(
                    "has {n_rows} rows, which the {n_initial} states of the start distribution do not divide; expected a \
                     row per state and action"
                )));
            }
            (n_initial, n_rows / n_initial, row_start)
        }
        (KernelForm::Dense(_), array) => match *array.shape() {
            [s, a, next] if s == next => (s, a, Vec::new()),
            _ => return Err(array.wrong_shape("[s, a, s]")),
        },
        (KernelForm::DenseSeveral, array) => match *array.shape() {
            [_, s, a, next] if s == next => (s, a, Vec::new()),
            _ => return Err(array.wrong_shape("[d, s, a, s]")),
        },
    };
    // Each pair has an action and a row.
    archive.keep::<[u32; 2]>(&key, n_states.saturating_mul(n_actions))?;
    let found = format!("key {key:?} has {n_states} states and {n_actions} actions");
    if let Some(value) = archive.optional("n_actions", |array| array.scalar::<i64>())?
        && usize::try_from(value) != Ok(n_actions)
    {
        return Err(archive.place("n_actions").refuse(format_args!("is {value}, but {found}")));
    }
    if let Some(value) = archive.optional("shape", |array| array.vector_of(2)?.numbers::<i64>())?
        && value != [n_states.saturating_mul(n_actions) as i64, n_states as i64]
    {
        return Err(archive.place("shape").refuse(format_args!("is {value:?}; expected [S × A, S], and {found}")));
    }
    if let Some(format) = archive.optional("format", |array| array.text())?
        && format != "csr"
    {
        let reason = format!("is {format:?}; expected \"csr\" (SciPy: matrix.tocsr())");
        return Err(archive.place("format").refuse(reason));
    }
    Ok((n_states, n_actions, row_start))
}

fn read_row_starts(array: ArchiveArray<'_>) -> Result<Vec<usize>> {
    let array = array.vector()?;
    if array.len() == 0 {
        return Err(array.wrong_shape("one number more than there are rows"));
    }
    array.keep::<usize>(array.len())?;
    let mut stream = array.stream::<i64>()?;
    let place = stream.place().clone();
    let mut starts: Vec<usize> = Vec::new();
    loop {
        let chunk = stream.next_chunk(usize::MAX)?;
        if chunk.is_empty() {
            return Ok(starts);
        }
        for &start in chunk {
            let least = starts.last().copied().unwrap_or(0);
            match usize::try_from(start) {
                Ok(start) if start >= least && (start == 0 || !starts.is_empty()) => starts.push(start),
                _ if starts.is_empty() => return Err(place.refuse_entry(0, format_args!("is {start}; expected 0"))),
                _ => {
                    let reason = format!("is {start}; expected at least {least}, the entry before");
                    return Err(place.refuse_entry(starts.len(), reason));
                }
            }
        }
    }
}

fn read_pairs(archive: &mut Archive, n_states: usize, n_actions: usize) -> Result<Pairs> {
    match read_mask(archive, "admissible", n_states, n_actions)? {
        Some(mask) => Pairs::from_mask(n_states, n_actions, &mask),
        None => Pairs::all(n_states, n_actions),
    }
}

/// A flag per admissible pair.
fn read_known(archive: &mut Archive, pairs: &Pairs) -> Result<Option<Vec<bool>>> {
    let Some(mask) = read_mask(archive, "known", pairs.n_states(), pairs.n_actions())? else { return Ok(None) };
    let mut known = Vec::with_capacity(pairs.len());
    for (row, (pair, &is_known)) in all_rows(pairs).zip(&mask).enumerate() {
        match pair {
            Some(_) => known.push(is_known),
            None if is_known => {
                let reason = "is 1, but this pair is not admissible; expected 0";
                return Err(archive.place("known").refuse_entry(row, reason));
            }
            None => {}
        }
    }
    Ok(Some(known))
}

/// A flag per state and action, if the key is there.
fn read_mask(archive: &mut Archive, key: &str, n_states: usize, n_actions: usize) -> Result<Option<Vec<bool>>> {
    archive.optional(key, |array| {
        if array.shape() != [n_states, n_actions] {
            return Err(array.wrong_shape(format_args!("[{n_states}, {n_actions}]")));
        }
        let place = array.place().clone();
        array.keep::<bool>(array.len())?;
        let mut rows = array.rows::<i64>()?;
        let mut row = Vec::new();
        let mut mask = Vec::new();
        for _ in 0..n_states {
            row.clear();
            rows.next_row(&mut row)?;
            for &value in &row {
                if value != 0 && value != 1 {
                    return Err(place.refuse_entry(mask.len(), format_args!("is {value}; expected 0 or 1")));
                }
                mask.push(value == 1);
            }
        }
        Ok(mask)
    })
}

/// Visits the rows `s * A + a` in order and says which are admissible.
fn each_row(pairs: &Pairs, mut visit: impl FnMut(usize, bool) -> Result<()>) -> Result<()> {
    let mut row = 0;
    for state in 0..pairs.n_states() {
        let mut admissible = pairs.of_state(state).peekable();
        for action in 0..pairs.n_actions() {
            visit(row, admissible.next_if(|&pair| pairs.action(pair).index() == action).is_some())?;
            row += 1;
        }
    }
    Ok(())
}

fn read_dynamics(
    archive: &mut Archive,
    form: KernelForm,
    pairs: &Arc<Pairs>,
    row_start: Vec<usize>,
) -> Result<Dynamics> {
    let kernels = match form {
        KernelForm::Dense(key) => read_dense_kernels(archive.array(key)?, 1, pairs)?,
        KernelForm::Compressed => vec![read_compressed_kernel(archive, "", pairs, row_start)?],
        KernelForm::DenseSeveral => {
            let array = archive.array("kernels")?;
            let n_kernels = array.shape()[0];
            read_dense_kernels(array, n_kernels, pairs)?
        }
        KernelForm::CompressedSeveral { n_kernels } => {
            let mut first_row_start = Some(row_start);
            let mut kernels = Vec::new();
            for i in 0..n_kernels {
                let suffix = form.suffix(i);
                let row_start = match first_row_start.take() {
                    Some(row_start) => row_start,
                    None => read_row_starts(archive.array(&format!("indptr{suffix}"))?)?,
                };
                let kernel = read_compressed_kernel(archive, &suffix, pairs, row_start);
                kernels.push(kernel.map_err(|error| in_kernel(i, error))?);
            }
            kernels
        }
    };
    let n_kernels = kernels.len();
    let centroids = archive.optional("centroids", |array| match *array.shape() {
        [n, d] if n == n_kernels && d > 0 => {
            let numbers: Vec<f64> = array.numbers()?;
            Ok(numbers.chunks_exact(d).map(<[f64]>::to_vec).collect())
        }
        _ => Err(array.wrong_shape(format_args!("[{n_kernels}, d], one row per kernel"))),
    })?;
    match (form, centroids) {
        (_, Some(centroids)) => Ok(Dynamics::Clusters(Clusters::new(kernels, centroids)?)),
        (KernelForm::Dense(_) | KernelForm::Compressed, None) => {
            kernels.into_iter().next().map(Dynamics::Shared).ok_or_else(|| archive.missing(&["transitions"]))
        }
        (KernelForm::DenseSeveral | KernelForm::CompressedSeveral { .. }, None) => {
            Ok(Dynamics::Mixture(Mixture::new(&kernels)?))
        }
    }
}

/// Names the kernel that the model refused. What the file layer refused names its key already.
fn in_kernel(kernel: usize, error: Error) -> Error {
    match error {
        Error::Io { .. } | Error::Format { .. } | Error::InFile { .. } => error,
        _ => Error::IncompatibleKernels { kernel, reason: error.to_string() },
    }
}

fn kernel_builder(pairs: &Arc<Pairs>, single_precision: bool) -> KernelBuilder {
    let builder = KernelBuilder::new(pairs.clone());
    if single_precision { builder.single_precision() } else { builder }
}

/// Kernels from dense rows, of which only one is held at a time.
fn read_dense_kernels(array: ArchiveArray<'_>, n_kernels: usize, pairs: &Arc<Pairs>) -> Result<Vec<Kernel>> {
    let (single_precision, allowance, place) = (array.is_single_precision(), array.allowance(), array.place().clone());
    let mut rows = array.rows::<f64>()?;
    let mut row = Vec::new();
    let mut kernels = Vec::new();
    for i in 0..n_kernels {
        let mut builder = kernel_builder(pairs, single_precision);
        let pushed = each_row(pairs, |_, admissible| {
            row.clear();
            rows.next_row(&mut row)?;
            if admissible {
                let entries = row.iter().enumerate().filter(|(_, p)| **p != 0.0);
                allowance.keep::<Entry>(&place, entries.clone().count())?;
                builder.push_row(entries.map(|(next, &p)| (next as i64, p)))?;
            }
            Ok(())
        });
        pushed.map_err(|error| if n_kernels > 1 { in_kernel(i, error) } else { error })?;
        kernels.push(builder.finish()?);
    }
    Ok(kernels)
}

/// A kernel from compressed rows. The probabilities are never held apart from the kernel.
fn read_compressed_kernel(
    archive: &mut Archive,
    suffix: &str,
    pairs: &Arc<Pairs>,
    row_start: Vec<usize>,
) -> Result<Kernel> {
    let (n_states, n_actions) = (pairs.n_states(), pairs.n_actions());
    let n_rows = row_start.len() - 1;
    if n_rows != n_states * n_actions {
        let reason = format!("key \"indptr{suffix}\" has {n_rows} rows; expected {n_states} × {n_actions}");
        return Err(format_error(archive.path(), reason));
    }
    let successors =
        admissible_entries(archive.array(&format!("indices{suffix}"))?, pairs, &row_start, |row, _, next| {
            let (state, action) = (row / n_actions, row % n_actions);
            let exists = u32::try_from(next).ok().filter(|&next| (next as usize) < n_states);
            exists.ok_or(Error::SuccessorOutOfRange { state, action, next, n_states })
        })?;
    let array = archive.array(&format!("data{suffix}"))?.vector_of(row_start[n_rows])?;
    array.keep::<f64>(array.len())?;
    let mut builder = kernel_builder(pairs, array.is_single_precision());
    let mut stream = array.stream::<f64>()?;
    let mut probabilities = Vec::new();
    let mut at = 0;
    each_row(pairs, |row, admissible| {
        let n = row_start[row + 1] - row_start[row];
        probabilities.clear();
        stream.take(n, &mut probabilities)?;
        if admissible {
            let entries = successors[at..at + n].iter().zip(&probabilities);
            builder.push_row(entries.map(|(&next, &p)| (next.into(), p)))?;
            at += n;
        }
        Ok(())
    })?;
    builder.finish()
}

/// The entries of the admissible rows, converted by their row, their index and their value.
fn admissible_entries<T: Number, U>(
    array: ArchiveArray<'_>,
    pairs: &Pairs,
    row_start: &[usize],
    mut convert: impl FnMut(usize, usize, T) -> Result<U>,
) -> Result<Vec<U>> {
    let array = array.vector_of(row_start[row_start.len() - 1])?;
    array.keep::<U>(array.len())?;
    let mut stream = array.stream()?;
    let mut row_entries = Vec::new();
    let mut converted = Vec::new();
    each_row(pairs, |row, admissible| {
        row_entries.clear();
        stream.take(row_start[row + 1] - row_start[row], &mut row_entries)?;
        if admissible {
            for (i, &value) in row_entries.iter().enumerate() {
                converted.push(convert(row, row_start[row] + i, value)?);
            }
        }
        Ok(())
    })?;
    converted.shrink_to_fit();
    Ok(converted)
}

fn read_features(archive: &mut Archive, pairs: &Pairs) -> Result<Features> {
    let (n_states, n_actions) = (pairs.n_states(), pairs.n_actions());
    if archive.has("features") {
        if let Some(key) = FEATURES_CSR_KEYS.into_iter().find(|key| archive.has(key)) {
            let reason = format!("keys \"features\" and {key:?} both give features; expected one of them");
            return Err(format_error(archive.path(), reason));
        }
        let n_features = archive.optional("n_features", |array| array.scalar::<i64>())?;
        let array = archive.array("features")?;
        if let Some(n) = n_features.filter(|&n| array.shape().last().map(|&k| k as i64) != Some(n)) {
            return Err(array.wrong_shape(format_args!("a last axis of {n}, which is \"n_features\"")));
        }
        return match *array.shape() {
            [s, k] if s == n_states && k > 0 => Features::per_state(s, k, array.numbers()?),
            [s, a, k] if s == n_states && a == n_actions && k > 0 => {
                let (allowance, place) = (array.allowance(), array.place().clone());
                let mut rows = array.rows::<f64>()?;
                let (mut row_start, mut feature, mut value) = (vec![0], Vec::new(), Vec::new());
                let mut dense = Vec::new();
                each_row(pairs, |_, admissible| {
                    dense.clear();
                    rows.next_row(&mut dense)?;
                    if admissible {
                        allowance.keep::<Entry>(&place, dense.iter().filter(|x| **x != 0.0).count())?;
                        for (j, &x) in dense.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                            feature.push(feature_index(j, k)?);
                            value.push(x);
                        }
                        row_start.push(feature.len());
                    }
                    Ok(())
                })?;
                Features::per_pair(pairs, SparseRows::new(k, row_start, feature, value)?)
            }
            _ => {
                Err(array
                    .wrong_shape(format_args!("[{n_states}, k] or [{n_states}, {n_actions}, k] with k at least 1")))
            }
        };
    }
    if !archive.has("features_indptr") {
        return Err(archive.missing(&["features", "features_indptr"]));
    }
    let array = archive.array("n_features")?;
    let place = array.place().clone();
    let value: i64 = array.scalar()?;
    let n_features = match usize::try_from(value) {
        Ok(n) if n > 0 && feature_index(n - 1, n).is_ok() => n,
        _ => return Err(place.refuse(format_args!("is {value}; expected a number from 1 to {}", u32::MAX))),
    };
    let array = archive.array("features_indptr")?;
    if array.shape() != [n_states * n_actions + 1] {
        return Err(array.wrong_shape(format_args!("[{n_states} × {n_actions} + 1]")));
    }
    let row_start = read_row_starts(array)?;
    let array = archive.array("features_indices")?;
    let place = array.place().clone();
    let feature = admissible_entries(array, pairs, &row_start, |_, index, j: i64| {
        let exists = usize::try_from(j).ok().filter(|&j| j < n_features).map(|j| j as u32);
        exists.ok_or_else(|| place.refuse_entry(index, format_args!("is {j}; expected a feature below {n_features}")))
    })?;
    let value = admissible_entries(archive.array("features_data")?, pairs, &row_start, |_, _, x: f64| Ok(x))?;
    let mut pair_start = vec![0];
    let mut end = 0;
    each_row(pairs, |row, admissible| {
        if admissible {
            end += row_start[row + 1] - row_start[row];
            pair_start.push(end);
        }
        Ok(())
    })?;
    Features::per_pair(pairs, SparseRows::new(n_features, pair_start, feature, value)?)
}

/// The index of a feature as a model holds it.
fn feature_index(feature: usize, n_features: usize) -> Result<u32> {
    let limit = u32::MAX as usize;
    u32::try_from(feature).map_err(|_| Error::TooLarge { what: "features", count: n_features, limit })
}

/// The reward of ICU-Sepsis as a feature of the state that is entered.
fn reward_as_feature(archive: &mut Archive, kernel: &Kernel) -> Result<Features> {
    let (pairs, n_states) = (kernel.pairs(), kernel.n_states());
    let array = archive.array("r_mat")?;
    if array.shape() != [n_states, pairs.n_actions(), n_states] {
        return Err(array.wrong_shape("that of \"tx_mat\""));
    }
    let place = array.place().clone();
    let mut rows = array.rows::<f64>()?;
    let mut row = Vec::new();
    let mut pair = 0;
    let mut reward: Vec<Option<f64>> = vec![None; n_states];
    each_row(pairs, |_, admissible| {
        row.clear();
        rows.next_row(&mut row)?;
        if admissible {
            for (next, _) in kernel.successors(pair) {
                if *reward[next].get_or_insert(row[next]) != row[next] {
                    return Err(place.refuse(format_args!(
                        "pays differently for entering state {next}, by the state or action it is entered from; \
                         give \"features\" instead"
                    )));
                }
            }
            pair += 1;
        }
        Ok(())
    })?;
    Features::per_state(n_states, 1, reward.into_iter().map(|r| r.unwrap_or(0.0)).collect())
}

fn read_criterion(archive: &mut Archive, default_discount: Option<f64>) -> Result<Criterion> {
    if let Some(criterion) = archive.optional("criterion", |array| array.text())? {
        let place = archive.place("criterion");
        if criterion != "average" {
            let hint = "expected \"average\", or no such key and a \"discount\"";
            return Err(place.refuse(format_args!("is {criterion:?}; {hint}")));
        }
        return match ["discount", "horizon"].into_iter().find(|key| archive.has(key)) {
            Some(key) => Err(place.refuse(format_args!("is \"average\", which takes no {key:?}"))),
            None => Ok(Criterion::Average),
        };
    }
    let discount = archive.optional("discount", |array| array.scalar())?.or(default_discount);
    let discount = discount.ok_or_else(|| archive.missing(&["discount"]))?;
    match archive.optional("horizon", |array| array.scalar::<i64>())? {
        None => Criterion::discounted(discount),
        Some(horizon) => match usize::try_from(horizon) {
            Ok(steps) => Criterion::finite_horizon(steps, discount),
            Err(_) => Err(archive.place("horizon").refuse(format_args!("is {horizon}; expected at least 1"))),
        },
    }
}

fn read_context_space(archive: &mut Archive) -> Result<Option<ContextSpace>> {
    if archive.has("context_lower") || archive.has("context_upper") {
        if archive.has("context_space") {
            let reason =
                "keys \"context_space\" and \"context_lower\" both say where contexts live; expected one of them";
            return Err(format_error(archive.path(), reason));
        }
        let lower = archive.array("context_lower")?.vector()?.numbers()?;
        let upper = archive.array("context_upper")?.vector()?.numbers()?;
        return Ok(Some(ContextSpace::Box { lower, upper }));
    }
    read_json(archive, "context_space")
}

fn read_json<T: serde::de::DeserializeOwned>(archive: &mut Archive, key: &str) -> Result<Option<T>> {
    archive.optional(key, |array| {
        let place = array.place().clone();
        let json = array.text()?;
        serde_json::from_str(&json).map_err(|error| place.refuse(format_args!("is not the JSON expected: {error}")))
    })
}

/// Writes a model: dense where that is small, in compressed rows otherwise. Inadmissible pairs have empty rows.
pub(super) fn write(path: &Path, model: &Cmdp) -> Result<()> {
    write_atomically(path, |file| ArchiveWriter::write(file, |archive| write_arrays(archive, model)))
}

fn write_arrays(archive: &mut ArchiveWriter<'_>, model: &Cmdp) -> io::Result<()> {
    let pairs = model.pairs();
    let (n_states, n_actions) = (pairs.n_states(), pairs.n_actions());
    write_dynamics(archive, model)?;
    if !pairs.is_full() {
        archive.numbers("admissible", "|b1", &[n_states, n_actions], pairs.mask())?;
    }
    if let Some(known) = model.known_pairs() {
        let mask = all_rows(pairs).map(|pair| pair.is_some_and(|pair| known[pair]));
        archive.numbers("known", "|b1", &[n_states, n_actions], mask)?;
    }
    match model.features() {
        Features::State { n_features, values } => {
            archive.numbers("features", "<f8", &[n_states, *n_features], values.iter().copied())?;
        }
        Features::StateAction(rows) => {
            let entries = |pair: usize| rows.row(pair);
            let lengths = all_rows(pairs).map(|pair| pair.map_or(0, |pair| entries(pair).count()));
            write_row_starts(archive, "features_indptr", n_states * n_actions, rows.parts().1.len(), lengths)?;
            let (_, feature, value) = rows.parts();
            archive.numbers("features_indices", "<u4", &[feature.len()], feature.iter().copied())?;
            archive.numbers("features_data", "<f8", &[value.len()], value.iter().copied())?;
            archive.numbers("n_features", "<i8", &[], [rows.n_features() as i64])?;
        }
    }
    archive.numbers("initial", "<f8", &[n_states], model.initial().iter().copied())?;
    match model.criterion() {
        Criterion::Discounted { discount } => archive.numbers("discount", "<f8", &[], [discount])?,
        Criterion::TotalReward => archive.numbers("discount", "<f8", &[], [1.0])?,
        Criterion::FiniteHorizon { steps, discount } => {
            archive.numbers("discount", "<f8", &[], [discount])?;
            archive.numbers("horizon", "<i8", &[], [i64::try_from(steps).map_err(io::Error::other)?])?;
        }
        Criterion::Average => archive.text("criterion", "average")?,
    }
    match (model.context_space(), model.dynamics()) {
        (ContextSpace::Any, _) | (ContextSpace::Simplex { .. }, Dynamics::Mixture(_)) => {}
        (ContextSpace::Box { lower, upper }, _) => {
            archive.numbers("context_lower", "<f8", &[lower.len()], lower.iter().copied())?;
            archive.numbers("context_upper", "<f8", &[upper.len()], upper.iter().copied())?;
        }
        (space @ ContextSpace::Simplex { .. }, _) => archive.text("context_space", &serde_json::to_string(space)?)?,
    }
    if *model.names() != Names::default() {
        archive.text("names", &serde_json::to_string(model.names())?)?;
    }
    Ok(())
}

/// One kernel of the dynamics, which may share its entries with others.
struct KernelEntries<'a> {
    layout: &'a Layout,
    /// `width` numbers per entry, of which this kernel has the one at `offset`.
    probabilities: &'a [f64],
    width: usize,
    offset: usize,
}

impl KernelEntries<'_> {
    fn of_pair(&self, pair: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let row = self.layout.pair_row[pair] as usize;
        let entries = self.layout.row_start[row]..self.layout.row_start[row + 1];
        entries
            .map(|entry| (self.layout.next[entry], self.probabilities[entry * self.width + self.offset]))
            .filter(|&(_, p)| p != 0.0)
    }
}

fn kernel_entries(kernel: &Kernel) -> KernelEntries<'_> {
    KernelEntries { layout: kernel.layout(), probabilities: kernel.probabilities(), width: 1, offset: 0 }
}

fn write_dynamics(archive: &mut ArchiveWriter<'_>, model: &Cmdp) -> io::Result<()> {
    let kernels: Vec<KernelEntries<'_>> = match model.dynamics() {
        Dynamics::Shared(kernel) => vec![kernel_entries(kernel)],
        Dynamics::Mixture(mixture) => {
            let (layout, probabilities, width) = (mixture.layout(), mixture.probabilities(), mixture.n_kernels());
            (0..width).map(|offset| KernelEntries { layout, probabilities, width, offset }).collect()
        }
        Dynamics::Clusters(clusters) => clusters.kernels().iter().map(kernel_entries).collect(),
    };
    let pairs = model.pairs();
    let (n_states, n_actions) = (pairs.n_states(), pairs.n_actions());
    let dense = n_states.saturating_mul(n_actions).saturating_mul(n_states) <= MAX_DENSE_ENTRIES;
    let several = !matches!(model.dynamics(), Dynamics::Shared(_));
    if dense {
        let rows = kernels.iter().flat_map(|kernel| all_rows(pairs).map(move |pair| (kernel, pair)));
        let numbers = rows.flat_map(|(kernel, pair)| {
            let mut row = vec![0.0; n_states];
            pair.into_iter().flat_map(|pair| kernel.of_pair(pair)).for_each(|(next, p)| row[next as usize] = p);
            row
        });
        if several {
            archive.numbers("kernels", "<f8", &[kernels.len(), n_states, n_actions, n_states], numbers)?;
        } else {
            archive.numbers("transitions", "<f8", &[n_states, n_actions, n_states], numbers)?;
        }
    } else {
        for (i, kernel) in kernels.iter().enumerate() {
            let suffix = if several { format!("_{i}") } else { String::new() };
            let entries = || all_rows(pairs).flatten().flat_map(|pair| kernel.of_pair(pair));
            let n_entries = entries().count();
            let lengths = all_rows(pairs).map(|pair| pair.map_or(0, |pair| kernel.of_pair(pair).count()));
            write_row_starts(archive, &format!("indptr{suffix}"), n_states * n_actions, n_entries, lengths)?;
            let successors = entries().map(|(next, _)| next as i32);
            archive.numbers(&format!("indices{suffix}"), "<i4", &[n_entries], successors)?;
            archive.numbers(&format!("data{suffix}"), "<f8", &[n_entries], entries().map(|(_, p)| p))?;
        }
        // With these, scipy.sparse.load_npz finds its matrix in the file.
        archive.numbers("shape", "<i8", &[2], [(n_states * n_actions) as i64, n_states as i64])?;
        archive.text("format", "csr")?;
    }
    if let Dynamics::Clusters(clusters) = model.dynamics() {
        let centroids = clusters.centroids();
        let numbers = centroids.iter().flatten().copied();
        archive.numbers("centroids", "<f8", &[centroids.len(), centroids[0].len()], numbers)?;
    }
    Ok(())
}

/// The pairs of the rows `s * A + a`, none where the action is not admissible.
fn all_rows(pairs: &Pairs) -> impl Iterator<Item = Option<usize>> + '_ {
    (0..pairs.n_states()).flat_map(move |state| (0..pairs.n_actions()).map(move |action| pairs.find(state, action)))
}

/// The running sums of the row lengths, in 32 bits where that is enough, as SciPy prefers.
fn write_row_starts(
    archive: &mut ArchiveWriter<'_>,
    key: &str,
    n_rows: usize,
    n_entries: usize,
    lengths: impl Iterator<Item = usize>,
) -> io::Result<()> {
    let mut end = 0;
    let starts = std::iter::once(0).chain(lengths.map(|length| {
        end += length;
        end
    }));
    if i32::try_from(n_entries).is_ok() {
        archive.numbers(key, "<i4", &[n_rows + 1], starts.map(|start| start as i32))
    } else {
        archive.numbers(key, "<i8", &[n_rows + 1], starts.map(|start| start as i64))
    }
}
