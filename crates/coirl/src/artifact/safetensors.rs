//! Models as this library keeps them: bit for bit, versioned, and in the form they have in memory.
//!
//! A [safetensors](https://github.com/huggingface/safetensors) file whose `__metadata__` is
//!
//! ```json
//! {"format": "coirl-model", "version": "1", "header": "<JSON>"}
//! ```
//!
//! The header holds words and counts; every real number is in a tensor, so that nothing is rounded by decimal notation.
//!
//! | tensor | type and shape | when |
//! |---|---|---|
//! | `initial` | F64 `[s]` | always |
//! | `admissible` | BOOL `[s, a]` | always |
//! | `known` | BOOL `[pairs]` | where some pairs are known and others not |
//! | `kernel.pair_row`, `.state_rows`, `.row_start`, `.next`, `.probabilities` | U32, U32, U64, U32, F64 | shared dynamics |
//! | `mixture.…` | the same, probabilities `[entries, kernels]` | mixture |
//! | `cluster.0.…`, `cluster.1.…`, … | the same as `kernel.…` | clusters |
//! | `centroids` | F64 `[kernels, d]` | clusters |
//! | `features` | F64 `[s, k]` | features per state |
//! | `features.row_start`, `.feature`, `.value` | U64, U32, F64 | features per state and action |
//! | `discount` | F64 `[]` | discounted and finite-horizon criteria |
//! | `context_lower`, `context_upper` | F64 `[d]` | contexts in a box |
//!
//! `pair_row` is the distinct row of each admissible pair, `state_rows` where the rows of each state begin, `row_start` where
//! the entries of each row begin, `next` the successor of each entry.

use super::atomic::write_atomically;
use super::{Place, format_error};
use crate::error::{Error, Result};
use crate::model::{
    Clusters, Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, Layout, Mixture, Names, Pairs, SparseRows,
};
use crate::nearest::nearest;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FORMAT: &str = "coirl-model";
const VERSION: &str = "1";
/// The limit of the safetensors format.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Tensors begin at multiples of this in the file.
const ALIGNMENT: usize = 8;
const CHUNK_BYTES: usize = 1 << 16;
/// A file may name thousands of tensors.
const MAX_NAMES_IN_MESSAGE: usize = 20;

/// The words and counts of a model.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    n_states: usize,
    n_actions: usize,
    n_features: usize,
    dynamics: DynamicsKind,
    features: FeaturesKind,
    criterion: CriterionKind,
    context_space: ContextSpaceKind,
    names: Names,
}

#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum DynamicsKind {
    Shared,
    Mixture { n_kernels: usize },
    Clusters { n_kernels: usize },
}

#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum FeaturesKind {
    State,
    StateAction,
}

#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum CriterionKind {
    Discounted,
    FiniteHorizon { steps: usize },
    TotalReward,
    Average,
}

#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ContextSpaceKind {
    Simplex { dimension: usize },
    Box,
    Any,
}

/// The `__metadata__` of a file, in the order in which it is written.
#[derive(serde::Serialize)]
struct FileMetadata<'a> {
    format: &'a str,
    version: &'a str,
    header: &'a str,
}

/// Reads a model from a file of `size` bytes.
pub(super) fn read(path: &Path, file: File, size: u64) -> Result<Cmdp> {
    let mut tensors = TensorFile::open(path, file, size)?;
    let header = tensors.header(FORMAT, VERSION)?;
    read_tensors(&mut tensors, header).map_err(|error| error.in_file(path))
}

fn read_tensors(tensors: &mut TensorFile, header: Header) -> Result<Cmdp> {
    // First, because it ties the claimed number of states to bytes in the file.
    let initial = tensors.tensor::<f64>("initial", &[header.n_states])?;
    let admissible = tensors.tensor::<bool>("admissible", &[header.n_states, header.n_actions])?;
    let pairs = Arc::new(Pairs::from_mask(header.n_states, header.n_actions, &admissible)?);
    drop(admissible);
    let dynamics = match header.dynamics {
        DynamicsKind::Shared => Dynamics::Shared(read_kernel(tensors, "kernel", &pairs)?),
        DynamicsKind::Mixture { n_kernels } => {
            let layout = read_layout(tensors, "mixture", &pairs)?;
            let probabilities = tensors.tensor("mixture.probabilities", &[layout.next.len(), n_kernels])?;
            Dynamics::Mixture(Mixture::from_parts(layout, n_kernels, probabilities)?)
        }
        DynamicsKind::Clusters { n_kernels } => {
            let mut kernels = Vec::new();
            for i in 0..n_kernels {
                let kernel = read_kernel(tensors, &format!("cluster.{i}"), &pairs);
                kernels.push(kernel.map_err(|error| in_cluster(i, error))?);
            }
            let numbers = tensors.matrix("centroids", n_kernels)?;
            let centroids = numbers.chunks_exact((numbers.len() / n_kernels.max(1)).max(1));
            Dynamics::Clusters(Clusters::new(kernels, centroids.map(<[f64]>::to_vec).collect())?)
        }
    };
    let features = match header.features {
        FeaturesKind::State => {
            let values = tensors.tensor("features", &[header.n_states, header.n_features])?;
            Features::per_state(header.n_states, header.n_features, values)?
        }
        FeaturesKind::StateAction => {
            let row_start = tensors.row_starts("features.row_start")?;
            let feature = tensors.vector("features.feature")?;
            let value = tensors.vector("features.value")?;
            Features::per_pair(&pairs, SparseRows::new(header.n_features, row_start, feature, value)?)?
        }
    };
    let criterion = match header.criterion {
        CriterionKind::Discounted => Criterion::Discounted { discount: tensors.scalar("discount")? },
        CriterionKind::FiniteHorizon { steps } => {
            Criterion::FiniteHorizon { steps, discount: tensors.scalar("discount")? }
        }
        CriterionKind::TotalReward => Criterion::TotalReward,
        CriterionKind::Average => Criterion::Average,
    };
    let context_space = match header.context_space {
        ContextSpaceKind::Simplex { dimension } => ContextSpace::Simplex { dimension },
        ContextSpaceKind::Box => {
            ContextSpace::Box { lower: tensors.vector("context_lower")?, upper: tensors.vector("context_upper")? }
        }
        ContextSpaceKind::Any => ContextSpace::Any,
    };
    let known = if tensors.has("known") { Some(tensors.tensor("known", &[pairs.len()])?) } else { None };
    tensors.check_all_read()?;
    let mut model = Cmdp::new(dynamics, features, initial, criterion)?;
    if *model.context_space() != context_space {
        model = model.with_context_space(context_space)?;
    }
    if let Some(known) = known {
        model = model.with_known_pairs(known)?;
    }
    model.with_names(header.names)
}

fn read_kernel(tensors: &mut TensorFile, prefix: &str, pairs: &Arc<Pairs>) -> Result<Kernel> {
    let layout = read_layout(tensors, prefix, pairs)?;
    let probabilities = tensors.tensor(&format!("{prefix}.probabilities"), &[layout.next.len()])?;
    Kernel::from_parts(layout, probabilities)
}

fn read_layout(tensors: &mut TensorFile, prefix: &str, pairs: &Arc<Pairs>) -> Result<Layout> {
    let pair_row = tensors.tensor(&format!("{prefix}.pair_row"), &[pairs.len()])?;
    let state_rows = tensors.tensor(&format!("{prefix}.state_rows"), &[pairs.n_states() + 1])?;
    let row_start = tensors.row_starts(&format!("{prefix}.row_start"))?;
    let next = tensors.vector(&format!("{prefix}.next"))?;
    Layout::checked(pairs.clone(), pair_row, state_rows, row_start, next)
}

/// Names the kernel that the model refused. What the file layer refused names its tensor already.
fn in_cluster(kernel: usize, error: Error) -> Error {
    match error {
        Error::Io { .. } | Error::Format { .. } | Error::InFile { .. } => error,
        _ => Error::IncompatibleKernels { kernel, reason: error.to_string() },
    }
}

/// An opened file whose tensors are read one at a time, each straight into its vector.
pub(super) struct TensorFile {
    path: PathBuf,
    file: File,
    metadata: Metadata,
    /// Where the tensors begin.
    data_start: u64,
    read: BTreeSet<String>,
}

impl TensorFile {
    pub(super) fn open(path: &Path, mut file: File, size: u64) -> Result<Self> {
        let refuse = |reason: String| format_error(path, reason);
        let io_error = |source| Error::Io { path: path.to_owned(), source };
        if size < 8 {
            return Err(refuse(format!("has only {size} bytes; a .safetensors file has at least 8")));
        }
        file.seek(SeekFrom::Start(0)).map_err(io_error)?;
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(io_error)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES || length > size - 8 {
            return Err(refuse(format!("claims a header of {length} bytes in a file of {size}")));
        }
        let mut json = Vec::new();
        Read::by_ref(&mut file).take(length).read_to_end(&mut json).map_err(io_error)?;
        let metadata: Metadata =
            serde_json::from_slice(&json).map_err(|error| refuse(format!("has an unreadable header: {error}")))?;
        let data_start = 8 + length;
        if data_start.checked_add(metadata.data_len() as u64) != Some(size) {
            let tensors = metadata.data_len();
            return Err(refuse(format!(
                "claims {tensors} bytes of tensors after byte {data_start}, but has {size} bytes"
            )));
        }
        Ok(Self { path: path.to_owned(), file, metadata, data_start, read: BTreeSet::new() })
    }

    /// What the file says it is.
    pub(super) fn format(&self) -> Option<&str> {
        self.field("format")
    }

    fn field(&self, key: &str) -> Option<&str> {
        self.metadata.metadata().as_ref().and_then(|fields| fields.get(key)).map(String::as_str)
    }

    /// The words and counts of a file of this format and version.
    pub(super) fn header<H: DeserializeOwned>(&self, format: &str, version: &str) -> Result<H> {
        let refuse = |reason: String| Err(format_error(&self.path, reason));
        match self.format() {
            Some(found) if found == format => {}
            Some(found) => return refuse(format!("is a {found:?} file; it does not say \"format\": \"{format}\"")),
            None => {
                let reason = format!("is a .safetensors file, but its metadata does not say \"format\": \"{format}\"");
                return refuse(reason);
            }
        }
        match self.field("version") {
            Some(found) if found == version => {}
            Some(found) => {
                return refuse(format!("has version {found:?} of {format}; this build reads version {version:?}"));
            }
            None => {
                return refuse(format!("does not say its version of {format}; this build reads version {version:?}"));
            }
        }
        let Some(json) = self.field("header") else { return refuse("has no \"header\" in its metadata".into()) };
        let kind = format.trim_start_matches("coirl-");
        serde_json::from_str(json).or_else(|error| refuse(format!("has an unreadable {kind} header: {error}")))
    }

    fn has(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// A tensor of exactly this shape.
    pub(super) fn tensor<T: Element>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<T>> {
        self.read_if(name, |found| found == shape, || format!("{shape:?}"))
    }

    /// A vector of any length.
    fn vector<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        self.read_if(name, |found| found.len() == 1, || "a vector".into())
    }

    /// A matrix of this many rows, none of them empty.
    pub(super) fn matrix(&mut self, name: &str, n_rows: usize) -> Result<Vec<f64>> {
        let fits = |found: &[usize]| matches!(found, &[rows, columns] if rows == n_rows && columns > 0);
        self.read_if(name, fits, || format!("[{n_rows}, at least 1]"))
    }

    fn scalar(&mut self, name: &str) -> Result<f64> {
        let place = self.place(name);
        self.tensor(name, &[])?.first().copied().ok_or_else(|| place.refuse("is empty"))
    }

    fn row_starts(&mut self, name: &str) -> Result<Vec<usize>> {
        let place = self.place(name);
        let starts: Vec<u64> = self.vector(name)?;
        let mut converted = Vec::with_capacity(starts.len());
        for (i, &start) in starts.iter().enumerate() {
            let start = usize::try_from(start);
            converted.push(start.map_err(|_| place.refuse_entry(i, "is more than this machine can address"))?);
        }
        Ok(converted)
    }

    fn read_if<T: Element>(
        &mut self,
        name: &str,
        fits: impl FnOnce(&[usize]) -> bool,
        expected: impl FnOnce() -> String,
    ) -> Result<Vec<T>> {
        let place = self.place(name);
        let Some(info) = self.metadata.info(name) else {
            let mut found = self.metadata.offset_keys();
            found.truncate(MAX_NAMES_IN_MESSAGE);
            return Err(format_error(&self.path, format!("tensor {name:?} is missing; the file has {found:?}")));
        };
        if info.dtype != T::DTYPE || !fits(&info.shape) {
            return Err(place.refuse(format_args!(
                "is {} of shape {:?}; expected {} of shape {}",
                info.dtype,
                info.shape,
                T::DTYPE,
                expected()
            )));
        }
        // `open` has found that the tensors fill the file exactly, so these bytes are there.
        let (start, end) = info.data_offsets;
        let damaged = |error: io::Error| place.refuse(format_args!("cannot be read: {error}"));
        self.file.seek(SeekFrom::Start(self.data_start + start as u64)).map_err(damaged)?;
        let mut values = Vec::new();
        values.try_reserve_exact((end - start) / T::SIZE).map_err(|error| place.refuse(format_args!("{error}")))?;
        let mut bytes = vec![0; CHUNK_BYTES.min(end - start)];
        let mut remaining = end - start;
        while remaining > 0 {
            let chunk = &mut bytes[..CHUNK_BYTES.min(remaining)];
            self.file.read_exact(chunk).map_err(damaged)?;
            let before = values.len();
            T::decode(chunk, &mut values).map_err(|i| place.refuse_entry(before + i, "is neither 0 nor 1"))?;
            remaining -= chunk.len();
        }
        self.read.insert(name.to_owned());
        Ok(values)
    }

    fn place(&self, name: &str) -> Place {
        Place { path: self.path.clone(), noun: "tensor", name: name.to_owned() }
    }

    /// Refuses tensors that no part of the model asked for.
    pub(super) fn check_all_read(&self) -> Result<()> {
        match self.metadata.offset_keys().into_iter().find(|name| !self.read.contains(name)) {
            Some(name) => {
                let known: Vec<&str> = self.read.iter().map(String::as_str).collect();
                let meant = nearest(&name, &known).unwrap_or_default();
                let reason = format!("unknown tensor {name:?}; the nearest that this model has is {meant:?}");
                Err(format_error(&self.path, reason))
            }
            None => Ok(()),
        }
    }
}

/// A number as tensors hold it.
pub(super) trait Element: Sized {
    const DTYPE: Dtype;
    const SIZE: usize;
    /// Appends the elements in `bytes`, or gives the index of the one that is none.
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize>;
}

impl Element for f64 {
    const DTYPE: Dtype = Dtype::F64;
    const SIZE: usize = 8;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        out.extend(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)));
        Ok(())
    }
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
    const SIZE: usize = 4;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        out.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)));
        Ok(())
    }
}

impl Element for u64 {
    const DTYPE: Dtype = Dtype::U64;
    const SIZE: usize = 8;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        out.extend(bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)));
        Ok(())
    }
}

impl Element for u32 {
    const DTYPE: Dtype = Dtype::U32;
    const SIZE: usize = 4;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        out.extend(bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)));
        Ok(())
    }
}

impl Element for u16 {
    const DTYPE: Dtype = Dtype::U16;
    const SIZE: usize = 2;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        out.extend(bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)));
        Ok(())
    }
}

impl Element for u8 {
    const DTYPE: Dtype = Dtype::U8;
    const SIZE: usize = 1;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        out.extend_from_slice(bytes);
        Ok(())
    }
}

impl Element for bool {
    const DTYPE: Dtype = Dtype::BOOL;
    const SIZE: usize = 1;
    fn decode(bytes: &[u8], out: &mut Vec<Self>) -> Result<(), usize> {
        match bytes.iter().position(|&b| b > 1) {
            Some(index) => Err(index),
            None => {
                out.extend(bytes.iter().map(|&b| b == 1));
                Ok(())
            }
        }
    }
}

/// A tensor to be written.
pub(super) struct Tensor<'a> {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) values: Values<'a>,
}

pub(super) enum Values<'a> {
    F64(Cow<'a, [f64]>),
    F32(Cow<'a, [f32]>),
    /// Written in 64 bits.
    Usize(&'a [usize]),
    U32(Cow<'a, [u32]>),
    U16(Vec<u16>),
    U8(Vec<u8>),
    Bool(Vec<bool>),
}

impl Values<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Values::F64(_) => Dtype::F64,
            Values::F32(_) => Dtype::F32,
            Values::Usize(_) => Dtype::U64,
            Values::U32(_) => Dtype::U32,
            Values::U16(_) => Dtype::U16,
            Values::U8(_) => Dtype::U8,
            Values::Bool(_) => Dtype::BOOL,
        }
    }

    fn n_bytes(&self) -> usize {
        match self {
            Values::F64(values) => 8 * values.len(),
            Values::F32(values) => 4 * values.len(),
            Values::Usize(values) => 8 * values.len(),
            Values::U32(values) => 4 * values.len(),
            Values::U16(values) => 2 * values.len(),
            Values::U8(values) => values.len(),
            Values::Bool(values) => values.len(),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Values::F64(values) => write_each(out, values, |x| x.to_le_bytes()),
            Values::F32(values) => write_each(out, values, |x| x.to_le_bytes()),
            Values::Usize(values) => write_each(out, values, |&x| (x as u64).to_le_bytes()),
            Values::U32(values) => write_each(out, values, |x| x.to_le_bytes()),
            Values::U16(values) => write_each(out, values, |x| x.to_le_bytes()),
            Values::U8(values) => out.write_all(values),
            Values::Bool(values) => write_each(out, values, |&x| [u8::from(x)]),
        }
    }
}

fn write_each<T, const N: usize>(out: &mut impl Write, values: &[T], encode: impl Fn(&T) -> [u8; N]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES);
    for chunk in values.chunks(CHUNK_BYTES / N) {
        bytes.clear();
        chunk.iter().for_each(|value| bytes.extend_from_slice(&encode(value)));
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes a model.
pub(super) fn write(path: &Path, model: &Cmdp) -> Result<()> {
    let (header, tensors) = parts(model);
    write_tensors(path, FORMAT, VERSION, &header, &tensors)
}

/// Writes a file of some format: its words and counts, then the tensors. The same content gives the same bytes.
pub(super) fn write_tensors(
    path: &Path,
    format: &str,
    version: &str,
    header: &impl Serialize,
    tensors: &[Tensor<'_>],
) -> Result<()> {
    write_atomically(path, |file| {
        let header = serde_json::to_string(header)?;
        let preamble = preamble(&FileMetadata { format, version, header: &header }, tensors)?;
        if preamble.len() as u64 > MAX_HEADER_BYTES {
            let reason = format!("its header would have {} bytes, more than the format allows", preamble.len());
            return Err(io::Error::other(reason));
        }
        file.write_all(&(preamble.len() as u64).to_le_bytes())?;
        file.write_all(preamble.as_bytes())?;
        tensors.iter().try_for_each(|tensor| tensor.values.write(file))
    })
}

/// The JSON before the tensors. Written here and not by the crate, which keeps the metadata in a hash map and would order it
/// differently each time.
fn preamble(metadata: &FileMetadata<'_>, tensors: &[Tensor<'_>]) -> io::Result<String> {
    let mut json = format!("{{\"__metadata__\":{}", serde_json::to_string(metadata)?);
    let mut start = 0;
    for tensor in tensors {
        let end = start + tensor.values.n_bytes();
        let info = TensorInfo { dtype: tensor.values.dtype(), shape: tensor.shape.clone(), data_offsets: (start, end) };
        json.push_str(&format!(",{}:{}", serde_json::to_string(&tensor.name)?, serde_json::to_string(&info)?));
        start = end;
    }
    json.push('}');
    json.extend(std::iter::repeat_n(' ', json.len().next_multiple_of(ALIGNMENT) - json.len()));
    Ok(json)
}

fn parts(model: &Cmdp) -> (Header, Vec<Tensor<'_>>) {
    let (n_states, n_actions, n_features) = (model.n_states(), model.n_actions(), model.n_features());
    let mut tensors = TensorList(Vec::new());
    tensors.floats("initial", &[n_states], model.initial());
    tensors.add("admissible", &[n_states, n_actions], Values::Bool(model.pairs().mask()));
    if let Some(known) = model.known_pairs() {
        tensors.add("known", &[known.len()], Values::Bool(known.to_vec()));
    }
    let dynamics = match model.dynamics() {
        Dynamics::Shared(kernel) => {
            tensors.kernel("kernel", kernel);
            DynamicsKind::Shared
        }
        Dynamics::Mixture(mixture) => {
            let (layout, n_kernels) = (mixture.layout(), mixture.n_kernels());
            tensors.layout("mixture", layout);
            tensors.floats("mixture.probabilities", &[layout.next.len(), n_kernels], mixture.probabilities());
            DynamicsKind::Mixture { n_kernels }
        }
        Dynamics::Clusters(clusters) => {
            let (kernels, centroids) = (clusters.kernels(), clusters.centroids());
            for (i, kernel) in kernels.iter().enumerate() {
                tensors.kernel(&format!("cluster.{i}"), kernel);
            }
            let shape = [centroids.len(), centroids[0].len()];
            tensors.add("centroids", &shape, Values::F64(Cow::Owned(centroids.concat())));
            DynamicsKind::Clusters { n_kernels: kernels.len() }
        }
    };
    let features = match model.features() {
        Features::State { values, .. } => {
            tensors.floats("features", &[n_states, n_features], values);
            FeaturesKind::State
        }
        Features::StateAction(rows) => {
            let (row_start, feature, value) = rows.parts();
            tensors.add("features.row_start", &[row_start.len()], Values::Usize(row_start));
            tensors.add("features.feature", &[feature.len()], Values::U32(Cow::Borrowed(feature)));
            tensors.floats("features.value", &[value.len()], value);
            FeaturesKind::StateAction
        }
    };
    let criterion = match model.criterion() {
        Criterion::Discounted { discount } => {
            tensors.scalar("discount", discount);
            CriterionKind::Discounted
        }
        Criterion::FiniteHorizon { steps, discount } => {
            tensors.scalar("discount", discount);
            CriterionKind::FiniteHorizon { steps }
        }
        Criterion::TotalReward => CriterionKind::TotalReward,
        Criterion::Average => CriterionKind::Average,
    };
    let context_space = match model.context_space() {
        ContextSpace::Simplex { dimension } => ContextSpaceKind::Simplex { dimension: *dimension },
        ContextSpace::Box { lower, upper } => {
            tensors.floats("context_lower", &[lower.len()], lower);
            tensors.floats("context_upper", &[upper.len()], upper);
            ContextSpaceKind::Box
        }
        ContextSpace::Any => ContextSpaceKind::Any,
    };
    // Wide elements first, so that every tensor is aligned to its element; then by name.
    let TensorList(mut tensors) = tensors;
    tensors.sort_by(|a, b| b.values.dtype().cmp(&a.values.dtype()).then_with(|| a.name.cmp(&b.name)));
    let names = model.names().clone();
    (Header { n_states, n_actions, n_features, dynamics, features, criterion, context_space, names }, tensors)
}

struct TensorList<'a>(Vec<Tensor<'a>>);

impl<'a> TensorList<'a> {
    fn add(&mut self, name: &str, shape: &[usize], values: Values<'a>) {
        self.0.push(Tensor { name: name.to_owned(), shape: shape.to_vec(), values });
    }

    fn floats(&mut self, name: &str, shape: &[usize], values: &'a [f64]) {
        self.add(name, shape, Values::F64(Cow::Borrowed(values)));
    }

    fn scalar(&mut self, name: &str, value: f64) {
        self.add(name, &[], Values::F64(Cow::Owned(vec![value])));
    }

    fn layout(&mut self, prefix: &str, layout: &'a Layout) {
        let lists = [("pair_row", &layout.pair_row), ("state_rows", &layout.state_rows), ("next", &layout.next)];
        for (part, values) in lists {
            self.add(&format!("{prefix}.{part}"), &[values.len()], Values::U32(Cow::Borrowed(values)));
        }
        self.add(&format!("{prefix}.row_start"), &[layout.row_start.len()], Values::Usize(&layout.row_start));
    }

    fn kernel(&mut self, prefix: &str, kernel: &'a Kernel) {
        self.layout(prefix, kernel.layout());
        let probabilities = kernel.probabilities();
        self.floats(&format!("{prefix}.probabilities"), &[probabilities.len()], probabilities);
    }
}
