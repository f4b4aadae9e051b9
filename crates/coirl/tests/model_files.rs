//! A model that is written is the model that is read, NumPy's files are understood, and no file can do harm: whatever its
//! bytes, reading ends with a model or with an error that says what is wrong.

#![allow(clippy::unwrap_used)]

use coirl::Error;
use coirl::artifact::{read_model, write_atomically, write_model};
use coirl::model::{
    Clusters, Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, KernelBuilder, Mixture, Names, Pairs,
    SparseRows,
};
use npyz::WriterBuilder;
use proptest::prelude::*;
use std::fs::File;
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

const FORMATS: [&str; 2] = ["npz", "safetensors"];

/// Probabilities that no short decimal number equals.
const THIRD: f64 = 1.0 / 3.0;

fn dense(n_states: usize, n_actions: usize, transitions: &[f64]) -> Kernel {
    Kernel::from_dense(n_states, n_actions, transitions, None).unwrap()
}

/// Three states, two actions, all pairs admissible; state 2 absorbing.
#[rustfmt::skip]
const TRANSITIONS: [f64; 18] = [
    0.5, 0.25, 0.25,  0.0, 1.0, 0.0,
    0.0, 0.5, 0.5,    0.25, 0.0, 0.75,
    0.0, 0.0, 1.0,    0.0, 0.0, 1.0,
];
const FEATURES: [f64; 6] = [1.0, 0.5, -2.0, 0.125, 0.0, 0.0];
const INITIAL: [f64; 3] = [0.25, 0.75, 0.0];

fn small_model() -> Cmdp {
    let features = Features::per_state(3, 2, FEATURES.to_vec()).unwrap();
    let kernel = dense(3, 2, &TRANSITIONS);
    Cmdp::new(Dynamics::Shared(kernel), features, INITIAL.to_vec(), Criterion::discounted(0.9).unwrap()).unwrap()
}

/// The same, with one pair that nobody takes.
fn known_model() -> Cmdp {
    small_model().with_known_pairs(vec![true, true, false, true, true, true]).unwrap()
}

/// Like [`small_model`], with action 1 of state 1 inadmissible and awkward numbers.
fn restricted_kernel(seed: f64) -> Kernel {
    #[rustfmt::skip]
    let transitions = [
        seed, 1.0 - seed, 0.0,   THIRD, THIRD, THIRD,
        0.1, 0.2, 0.7,           0.0, 0.0, 0.0,
        0.0, 0.0, 1.0,           0.0, 0.0, 1.0,
    ];
    Kernel::from_dense(3, 2, &transitions, Some(&[true, true, true, false, true, true])).unwrap()
}

fn sparse_features(pairs: &Pairs) -> Features {
    let row_start = (0..=pairs.len()).map(|pair| if pair == 0 { 0 } else { pair + 1 }).collect();
    let feature = (0..pairs.len() as u32 + 1).map(|i| i % 4).collect();
    // A stored zero and a negative zero are kept as they are.
    let value = (0..=pairs.len()).map(|i| [0.1 + 0.2, 0.0, -0.0, -7.25][i % 4]).collect();
    Features::per_pair(pairs, SparseRows::new(4, row_start, feature, value).unwrap()).unwrap()
}

/// A kernel of 200 states with one shared row in each, which the archive keeps in compressed rows.
fn large_kernel(shift: u32) -> Kernel {
    let mut builder = KernelBuilder::new(Arc::new(Pairs::all(200, 3).unwrap()));
    for row in 0..600_u32 {
        let (state, action) = (row / 3, row % 3);
        let next = |step: u32| i64::from((state + step * (action / 2 + 1) + shift) % 200);
        builder.push_row([(next(1), 0.1), (next(5), 0.2), (next(9), 0.7)].into_iter()).unwrap();
    }
    builder.finish().unwrap()
}

/// Every kind of dynamics, features, admissible sets, criterion, context space and names.
fn models() -> Vec<(&'static str, Cmdp)> {
    let discounted = Criterion::discounted(0.1 + 0.2 + 0.6).unwrap();
    let ninth = vec![2.0 * THIRD, THIRD, 0.0];
    let restricted = restricted_kernel(0.3);
    let pairs = restricted.pairs().clone();
    let sparse = sparse_features(&pairs);
    let per_state = Features::per_state(3, 2, vec![0.1, 0.7, THIRD, -1e-300, 0.0, 0.0]).unwrap();
    let names = Names {
        model: "kleines Modell ✓".into(),
        actions: vec!["wait".into(), "treat \"now\"".into()],
        features: vec!["a".into(), "b".into()],
        contexts: vec!["age".into(), "weight".into(), "".into()],
    };
    let bounds = ContextSpace::Box { lower: vec![-0.1 - 0.2, 0.0, -1e17], upper: vec![0.1 + 0.7, THIRD, 1e-17] };
    let kernels = vec![restricted_kernel(0.3), restricted_kernel(1.0), restricted_kernel(THIRD)];
    let mixture = Mixture::new(&kernels).unwrap();
    let centroids = vec![vec![0.1, 0.2], vec![0.3, 0.4], vec![0.5 + THIRD, -1.0]];
    let clusters = Clusters::new(kernels, centroids).unwrap();
    let large = Features::per_state(200, 1, (0..200).map(|s| f64::from(s).sqrt()).collect()).unwrap();
    let uniform = vec![1.0 / 200.0; 200];
    let large_mixture = Mixture::new(&[large_kernel(0), large_kernel(1)]).unwrap();
    let large_clusters = Clusters::new(vec![large_kernel(0), large_kernel(7)], vec![vec![0.0], vec![1.0]]).unwrap();

    let shared = |features: &Features, criterion| {
        Cmdp::new(Dynamics::Shared(restricted.clone()), features.clone(), ninth.clone(), criterion).unwrap()
    };
    let total = Cmdp::new(
        Dynamics::Shared(dense(3, 2, &TRANSITIONS)),
        Features::per_state(3, 1, vec![1.0, THIRD, 0.0]).unwrap(),
        INITIAL.to_vec(),
        Criterion::TotalReward,
    );
    vec![
        ("plain", small_model()),
        ("known pairs", known_model()),
        (
            "known among admissible pairs",
            shared(&sparse, discounted).with_known_pairs(vec![false, true, true, true, false]).unwrap(),
        ),
        ("state features", shared(&per_state, discounted)),
        ("pair features", shared(&sparse, discounted)),
        ("finite horizon", shared(&sparse, Criterion::finite_horizon(7, 1.0).unwrap())),
        ("average", shared(&per_state, Criterion::Average)),
        ("discount zero", shared(&per_state, Criterion::discounted(0.0).unwrap())),
        ("total reward", total.unwrap()),
        (
            "names and box",
            shared(&per_state, discounted).with_context_space(bounds).unwrap().with_names(names).unwrap(),
        ),
        (
            "simplex without mixture",
            shared(&per_state, discounted).with_context_space(ContextSpace::Simplex { dimension: 5 }).unwrap(),
        ),
        ("mixture", Cmdp::new(Dynamics::Mixture(mixture), sparse.clone(), ninth.clone(), discounted).unwrap()),
        ("clusters", Cmdp::new(Dynamics::Clusters(clusters), per_state, ninth, discounted).unwrap()),
        (
            "compressed",
            Cmdp::new(Dynamics::Shared(large_kernel(3)), large.clone(), uniform.clone(), discounted).unwrap(),
        ),
        (
            "compressed mixture",
            Cmdp::new(Dynamics::Mixture(large_mixture), large.clone(), uniform.clone(), discounted).unwrap(),
        ),
        (
            "compressed clusters",
            Cmdp::new(Dynamics::Clusters(large_clusters), large, uniform, Criterion::Average).unwrap(),
        ),
    ]
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn bytes_of(model: &Cmdp, format: &str) -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join(format!("model.{format}"));
    write_model(&path, model).unwrap();
    std::fs::read(path).unwrap()
}

fn read_bytes(bytes: &[u8]) -> coirl::Result<Cmdp> {
    let folder = folder();
    let path = folder.path().join("model.npz");
    std::fs::write(&path, bytes).unwrap();
    read_model(&path)
}

/// The message without the folder that the test made up.
fn message(refused: coirl::Result<Cmdp>) -> String {
    let message = refused.expect_err("the file should be refused").to_string();
    message.split_once("model.npz: ").map_or(message.clone(), |(_, reason)| reason.to_owned())
}

#[track_caller]
fn assert_refused(refused: coirl::Result<Cmdp>, fragment: &str) {
    let message = message(refused);
    assert!(message.contains(fragment), "expected {fragment:?} in {message:?}");
}

#[test]
fn what_is_written_is_read_bit_for_bit() {
    for (kind, model) in models() {
        for format in FORMATS {
            let bytes = bytes_of(&model, format);
            let read = read_bytes(&bytes).unwrap_or_else(|error| panic!("{kind}, {format}: {error}"));
            assert!(read == model, "{kind}, {format}: another model");
            assert!(bytes_of(&read, format) == bytes, "{kind}, {format}: other bytes");
        }
    }
}

#[test]
fn a_kernel_with_stored_zeros_survives() {
    // The kernel of a mixture for a context on the edge of the simplex has entries of probability zero, and rows that
    // became equal.
    let mixture = Mixture::new(&[restricted_kernel(0.3), restricted_kernel(1.0)]).unwrap();
    let context = ContextSpace::Simplex { dimension: 2 }.context([0.0, 1.0]).unwrap();
    let kernel = mixture.kernel(&context).unwrap();
    let features = sparse_features(kernel.pairs());
    let model = Cmdp::new(Dynamics::Shared(kernel), features, INITIAL.to_vec(), Criterion::Average).unwrap();
    assert!(read_bytes(&bytes_of(&model, "safetensors")).unwrap() == model);
    let Dynamics::Shared(read) = read_bytes(&bytes_of(&model, "npz")).unwrap().dynamics().clone() else { panic!() };
    assert!(read == restricted_kernel(1.0), "the archive holds the probabilities and not their storage");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_small_model_survives(
        weights in prop::collection::vec(0.0_f64..1.0, 4 * 3 * 4),
        features in prop::collection::vec(-1e3_f64..1e3, 4 * 2),
        mask in prop::collection::vec(any::<bool>(), 4 * 3),
        discount in 0.0_f64..1.0,
    ) {
        let mut weights = weights;
        let mut mask = mask;
        for (row, chunk) in weights.chunks_exact_mut(4).enumerate() {
            chunk[row % 4] += 0.5;
            let sum: f64 = chunk.iter().sum();
            chunk.iter_mut().for_each(|w| *w /= sum);
        }
        mask.chunks_exact_mut(3).for_each(|actions| actions[1] = true);
        let kernel = Kernel::from_dense(4, 3, &weights, Some(&mask)).unwrap();
        let features = Features::per_state(4, 2, features).unwrap();
        let criterion = Criterion::discounted(discount).unwrap();
        let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![0.25; 4], criterion).unwrap();
        for format in FORMATS {
            prop_assert!(read_bytes(&bytes_of(&model, format)).unwrap() == model, "{}", format);
        }
    }
}

/// The bytes of an `.npy` file.
fn npy<T: npyz::Serialize>(element: &str, shape: &[u64], order: npyz::Order, values: Vec<T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let dtype = npyz::DType::new_scalar(element.parse().unwrap());
    let mut array =
        npyz::WriteOptions::new().dtype(dtype).shape(shape).order(order).writer(&mut bytes).begin_nd().unwrap();
    array.extend(values).unwrap();
    array.finish().unwrap();
    bytes
}

fn floats(shape: &[u64], values: &[f64]) -> Vec<u8> {
    npy("<f8", shape, npyz::Order::C, values.to_vec())
}

fn integers(shape: &[u64], values: &[i64]) -> Vec<u8> {
    npy("<i8", shape, npyz::Order::C, values.to_vec())
}

fn text(value: &str) -> Vec<u8> {
    npy(&format!("<U{}", value.chars().count()), &[], npyz::Order::C, vec![value.to_owned()])
}

/// An `.npy` file with this header text and these bytes of data.
fn npy_with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// The last axis slowest, as in Fortran order.
fn fortran(shape: &[usize], values: &[f64]) -> Vec<f64> {
    let mut reordered = vec![0.0; values.len()];
    for (c_index, &value) in values.iter().enumerate() {
        let (mut rest, mut index, mut stride) = (c_index, 0, values.len());
        for &axis in shape.iter().rev() {
            stride /= axis;
            index += rest % axis * stride;
            rest /= axis;
        }
        reordered[index] = value;
    }
    reordered
}

#[derive(Clone)]
struct Npz(Vec<(String, Vec<u8>)>);

impl Npz {
    /// The arrays of [`small_model`].
    fn small() -> Self {
        Npz(Vec::new())
            .with("transitions", floats(&[3, 2, 3], &TRANSITIONS))
            .with("features", floats(&[3, 2], &FEATURES))
            .with("initial", floats(&[3], &INITIAL))
            .with("discount", floats(&[], &[0.9]))
    }

    /// The same with the transitions in compressed rows.
    fn compressed() -> Self {
        let (indptr, indices, data) = compressed_rows();
        let n = data.len() as u64;
        Npz::small()
            .without("transitions")
            .with("indptr", integers(&[7], &indptr))
            .with("indices", integers(&[n], &indices))
            .with("data", floats(&[n], &data))
    }

    fn with(self, key: &str, bytes: Vec<u8>) -> Self {
        let mut npz = self.without(key);
        npz.0.push((key.to_owned(), bytes));
        npz
    }

    fn without(mut self, key: &str) -> Self {
        self.0.retain(|(name, _)| name != key);
        self
    }

    fn bytes(&self, method: CompressionMethod) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (key, bytes) in &self.0 {
            let options = SimpleFileOptions::default().compression_method(method);
            zip.start_file(format!("{key}.npy"), options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn read(&self) -> coirl::Result<Cmdp> {
        read_bytes(&self.bytes(CompressionMethod::Stored))
    }
}

/// [`TRANSITIONS`] in compressed rows.
fn compressed_rows() -> (Vec<i64>, Vec<i64>, Vec<f64>) {
    let (mut indptr, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
    for row in TRANSITIONS.chunks_exact(3) {
        for (next, &p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            indices.push(next as i64);
            data.push(p);
        }
        indptr.push(data.len() as i64);
    }
    (indptr, indices, data)
}

#[test]
fn dense_transitions_of_every_type_and_order() {
    let model = small_model();
    let single: Vec<f32> = TRANSITIONS.iter().map(|&p| p as f32).collect();
    let columns = fortran(&[3, 2, 3], &TRANSITIONS);
    let variants = [
        floats(&[3, 2, 3], &TRANSITIONS),
        npy("<f8", &[3, 2, 3], npyz::Order::Fortran, columns.clone()),
        npy(">f8", &[3, 2, 3], npyz::Order::Fortran, columns),
        npy(">f8", &[3, 2, 3], npyz::Order::C, TRANSITIONS.to_vec()),
        npy("<f4", &[3, 2, 3], npyz::Order::C, single.clone()),
        npy(">f4", &[3, 2, 3], npyz::Order::C, single),
    ];
    for (i, transitions) in variants.into_iter().enumerate() {
        let npz = Npz::small().with("transitions", transitions);
        assert!(npz.read().unwrap() == model, "variant {i}");
        assert!(read_bytes(&npz.bytes(CompressionMethod::Deflated)).unwrap() == model, "variant {i}, deflated");
    }
}

#[test]
fn compressed_transitions_of_every_type() {
    let model = small_model();
    let (indptr, indices, data) = compressed_rows();
    let n = data.len() as u64;
    let c = npyz::Order::C;
    let pointers = [
        npy("<i4", &[7], c, indptr.iter().map(|&x| x as i32).collect()),
        npy(">i8", &[7], c, indptr.clone()),
        npy("<u8", &[7], c, indptr.iter().map(|&x| x as u64).collect()),
        npy("<f8", &[7], c, indptr.iter().map(|&x| x as f64).collect()),
    ];
    let successors = [
        npy("<i4", &[n], c, indices.iter().map(|&x| x as i32).collect()),
        npy(">i4", &[n], c, indices.iter().map(|&x| x as i32).collect()),
        npy("<u4", &[n], c, indices.iter().map(|&x| x as u32).collect()),
        npy("<u2", &[n], c, indices.iter().map(|&x| x as u16).collect()),
        npy("|u1", &[n], c, indices.iter().map(|&x| x as u8).collect()),
        npy("|i1", &[n], c, indices.iter().map(|&x| x as i8).collect()),
    ];
    assert!(Npz::compressed().read().unwrap() == model);
    for (i, bytes) in pointers.into_iter().enumerate() {
        assert!(Npz::compressed().with("indptr", bytes).read().unwrap() == model, "indptr {i}");
    }
    for (i, bytes) in successors.into_iter().enumerate() {
        assert!(Npz::compressed().with("indices", bytes).read().unwrap() == model, "indices {i}");
    }
    let single = npy("<f4", &[n], c, data.iter().map(|&x| x as f32).collect());
    assert!(Npz::compressed().with("data", single).read().unwrap() == model);
}

#[test]
fn the_number_of_actions_can_be_said_or_left_out() {
    let model = small_model();
    let scipy = Npz::compressed()
        .with("shape", integers(&[2], &[6, 3]))
        .with("format", npy("|S3", &[], npyz::Order::C, vec![b"csr".to_vec()]))
        .with("_is_array", npy("|b1", &[], npyz::Order::C, vec![true]));
    assert!(scipy.read().unwrap() == model);
    assert!(Npz::compressed().with("n_actions", integers(&[1], &[2])).read().unwrap() == model);
    assert!(Npz::compressed().with("n_actions", floats(&[], &[2.0])).read().unwrap() == model);
    let wrong = Npz::compressed().with("n_actions", integers(&[], &[3])).read();
    assert_refused(wrong, "key \"n_actions\" is 3, but key \"indptr\" has 3 states and 2 actions");
    let wrong = Npz::compressed().with("shape", integers(&[2], &[6, 6])).read();
    assert_refused(wrong, "key \"shape\" is [6, 6]; expected [S × A, S]");
    let columns = scipy.with("format", npy("|S3", &[], npyz::Order::C, vec![b"csc".to_vec()]));
    assert_refused(columns.read(), "key \"format\" is \"csc\"; expected \"csr\"");
}

#[test]
fn entries_of_a_row_come_in_any_order_and_add_up() {
    let model = small_model();
    let (mut indptr, mut indices, mut data) = compressed_rows();
    // Row 0 is 0.5, 0.25, 0.25; its first entry in two halves, last.
    indices.splice(0..3, [2, 1, 0, 0]);
    data.splice(0..3, [0.25, 0.25, 0.25, 0.25]);
    indptr[1..].iter_mut().for_each(|start| *start += 1);
    let n = data.len() as u64;
    let npz = Npz::compressed()
        .with("indptr", integers(&[7], &indptr))
        .with("indices", integers(&[n], &indices))
        .with("data", floats(&[n], &data));
    assert!(npz.read().unwrap() == model);
}

#[test]
fn single_precision_rows_are_scaled_and_double_ones_refused() {
    let mut thirds = TRANSITIONS;
    thirds[..3].fill(f64::from(THIRD as f32));
    assert_refused(
        Npz::small().with("transitions", floats(&[3, 2, 3], &thirds)).read(),
        "state 0, action 0: the transition probabilities sum to",
    );
    let single = npy("<f4", &[3, 2, 3], npyz::Order::C, thirds.iter().map(|&p| p as f32).collect());
    let initial = npy("<f4", &[3], npyz::Order::C, vec![THIRD as f32; 3]);
    let model = Npz::small().with("transitions", single).with("initial", initial).read().unwrap();
    let sum: f64 = model.initial().iter().sum();
    assert!((sum - 1.0).abs() < 1e-15);
    let row: Vec<f64> = model.shared_mdp().unwrap().kernel().successors(0).map(|(_, p)| p).collect();
    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-15);
}

#[test]
fn known_pairs_of_either_format() {
    let npz = Npz::small();
    let known = |shape: &[u64], flags: &[i64]| npz.clone().with("known", integers(shape, flags)).read();
    assert!(known(&[3, 2], &[1, 1, 0, 1, 1, 1]).unwrap() == known_model());
    assert!(npz.read().unwrap().known_pairs().is_none());
    assert_refused(known(&[3, 2], &[1, 1, 0, 2, 1, 1]), "key \"known\"[3] is 2; expected 0 or 1");
    assert_refused(known(&[3, 2], &[1, 1, 0, 0, 1, 1]), "state 1 has no known action");
    assert_refused(known(&[2, 2], &[1, 1, 0, 1]), "key \"known\"");
    assert_refused(known(&[6], &[1, 1, 0, 1, 1, 1]), "key \"known\"");
    let masked = npz.clone().with("admissible", integers(&[3, 2], &[1, 1, 1, 0, 1, 1]));
    let both = masked.clone().with("known", integers(&[3, 2], &[0, 1, 1, 0, 1, 1]));
    assert_eq!(both.read().unwrap().known_pairs(), Some(&[false, true, true, true, true][..]));
    let contradiction = masked.with("known", integers(&[3, 2], &[0, 1, 1, 1, 1, 1]));
    assert_refused(contradiction.read(), "key \"known\"[3] is 1, but this pair is not admissible");

    let changed = |index, flag| read_bytes(&with_number_in(&known_model(), "known", index, &[flag]));
    assert_refused(changed(2, 7), "tensor \"known\"[2] is neither 0 nor 1");
    assert_refused(changed(3, 0), "state 1 has no known action");
    let (json, data) = split(&bytes_of(&known_model(), "safetensors"));
    let reshaped =
        json.replace("\"known\":{\"dtype\":\"BOOL\",\"shape\":[6]", "\"known\":{\"dtype\":\"BOOL\",\"shape\":[2,3]");
    let expected = "tensor \"known\" is BOOL of shape [2, 3]; expected BOOL of shape [6]";
    assert_refused(read_bytes(&join(&reshaped, &data)), expected);
}

#[test]
fn inadmissible_rows_are_not_looked_at() {
    let mut transitions = TRANSITIONS;
    transitions[9..12].copy_from_slice(&[f64::NAN, -3.0, 0.0]);
    let mask = [true, true, true, false, true, true];
    let npz = Npz::small().with("transitions", floats(&[3, 2, 3], &transitions));
    let expected = Kernel::from_dense(3, 2, &TRANSITIONS, Some(&mask)).unwrap();
    let c = npyz::Order::C;
    let masks = [
        npy("|b1", &[3, 2], c, mask.to_vec()),
        npy("|u1", &[3, 2], c, mask.iter().map(|&m| u8::from(m)).collect()),
        npy("<i8", &[3, 2], c, mask.iter().map(|&m| i64::from(m)).collect()),
        npy("|b1", &[3, 2], npyz::Order::Fortran, vec![true, true, true, true, false, true]),
    ];
    for (i, bytes) in masks.into_iter().enumerate() {
        let model = npz.clone().with("admissible", bytes).read().unwrap();
        assert!(*model.dynamics() == Dynamics::Shared(expected.clone()), "mask {i}");
    }
    let twos = integers(&[3, 2], &[1, 1, 1, 2, 1, 1]);
    assert_refused(npz.clone().with("admissible", twos).read(), "key \"admissible\"[3] is 2; expected 0 or 1");
    let empty = integers(&[3, 2], &[1, 1, 0, 0, 1, 1]);
    assert_refused(npz.with("admissible", empty).read(), "state 1 has no admissible action");
}

#[test]
fn features_per_pair_dense_and_sparse_agree() {
    let mask = npy("|b1", &[3, 2], npyz::Order::C, vec![true, true, false, true, true, true]);
    #[rustfmt::skip]
    let values = [
        1.0, 0.0, 2.0,  0.0, 0.0, 0.0,
        9.0, 9.0, 9.0,  0.0, -1.5, 0.0,
        0.0, 0.0, 0.5,  4.0, 0.0, 0.0,
    ];
    let npz = Npz::small().with("admissible", mask).without("features");
    let dense = npz.clone().with("features", floats(&[3, 2, 3], &values)).read().unwrap();
    let columns = npy("<f8", &[3, 2, 3], npyz::Order::Fortran, fortran(&[3, 2, 3], &values));
    assert!(npz.clone().with("features", columns).read().unwrap() == dense);
    let sparse = npz
        .with("features_indptr", integers(&[7], &[0, 2, 2, 4, 5, 6, 7]))
        .with("features_indices", integers(&[7], &[0, 2, 1, 0, 1, 2, 0]))
        .with("features_data", floats(&[7], &[1.0, 2.0, 9.0, 9.0, -1.5, 0.5, 4.0]))
        .with("n_features", integers(&[], &[3]));
    assert!(sparse.read().unwrap() == dense);
    let Features::StateAction(rows) = dense.features() else { panic!("expected features per pair") };
    assert_eq!(rows.row(2).collect::<Vec<_>>(), [(1, -1.5)]);

    let beyond = sparse.clone().with("features_indices", integers(&[7], &[0, 2, 1, 0, 3, 2, 0]));
    assert_refused(beyond.read(), "key \"features_indices\"[4] is 3; expected a feature below 3");
    let none = sparse.clone().with("n_features", integers(&[], &[0]));
    assert_refused(none.read(), "key \"n_features\" is 0; expected a number from 1");
    let short = sparse.clone().with("features_indptr", integers(&[4], &[0, 2, 2, 7]));
    assert_refused(short.read(), "key \"features_indptr\" has shape [4]; expected [3 × 2 + 1]");
    let both = sparse.with("features", floats(&[3, 2], &FEATURES));
    assert_refused(both.read(), "both give features");
}

#[test]
fn features_per_state_in_fortran_order_and_as_integers() {
    let columns = npy("<f8", &[3, 2], npyz::Order::Fortran, fortran(&[3, 2], &FEATURES));
    assert!(Npz::small().with("features", columns).read().unwrap() == small_model());
    let model = Npz::small().with("features", integers(&[3, 1], &[3, -4, 5])).read().unwrap();
    assert!(*model.features() == Features::per_state(3, 1, vec![3.0, -4.0, 5.0]).unwrap());
}

#[test]
fn several_kernels_are_a_mixture_or_with_centroids_clusters() {
    let kernels = [dense(3, 2, &TRANSITIONS), {
        let mut other = TRANSITIONS;
        other[..3].copy_from_slice(&[0.0, 0.0, 1.0]);
        dense(3, 2, &other)
    }];
    let mut both = TRANSITIONS.to_vec();
    both.extend(TRANSITIONS);
    both[18..21].copy_from_slice(&[0.0, 0.0, 1.0]);
    let (indptr, indices, data) = compressed_rows();
    let n = data.len() as u64;
    let npz = Npz::small().without("transitions");
    let dense = npz.clone().with("kernels", floats(&[2, 3, 2, 3], &both));
    let columns =
        npz.clone().with("kernels", npy("<f8", &[2, 3, 2, 3], npyz::Order::Fortran, fortran(&[2, 3, 2, 3], &both)));
    let shifted: Vec<i64> = indptr.iter().map(|&start| (start - 2).max(0)).collect();
    let compressed = npz
        .with("indptr_0", integers(&[7], &indptr))
        .with("indices_0", integers(&[n], &indices))
        .with("data_0", floats(&[n], &data))
        .with("indptr_1", integers(&[7], &shifted))
        .with("indices_1", integers(&[n - 2], &indices[2..]))
        .with("data_1", floats(&[n - 2], &[&[1.0], &data[3..]].concat()));
    let centroids = floats(&[2, 1], &[0.0, 1.0]);
    for (i, npz) in [dense, columns, compressed.clone()].into_iter().enumerate() {
        let mixture = npz.read().unwrap();
        assert!(*mixture.dynamics() == Dynamics::Mixture(Mixture::new(&kernels).unwrap()), "{i}");
        assert_eq!(*mixture.context_space(), ContextSpace::Simplex { dimension: 2 });
        let clusters = npz.with("centroids", centroids.clone()).read().unwrap();
        let expected = Clusters::new(kernels.to_vec(), vec![vec![0.0], vec![1.0]]).unwrap();
        assert!(*clusters.dynamics() == Dynamics::Clusters(expected), "{i}");
    }
    let wrong = compressed.clone().with("centroids", floats(&[3, 1], &[0.0, 1.0, 2.0])).read();
    assert_refused(wrong, "key \"centroids\" has shape [3, 1]; expected [2, d], one row per kernel");
    let wrong = compressed.clone().with("data_1", floats(&[n - 2], &vec![0.5; n as usize - 2])).read();
    assert_refused(wrong, "base kernel 1: state 0, action 0: the transition probabilities sum to 0.5");
    let gap = compressed.clone().without("indptr_1").with("indptr_2", integers(&[7], &shifted)).read();
    assert_refused(gap, "skips a number");
    assert_refused(compressed.without("indices_1").read(), "key \"indices_1\" is missing");
}

#[test]
fn criteria_and_contexts_by_key() {
    let read = |npz: Npz| npz.read().unwrap();
    let one = floats(&[1], &[0.5]);
    assert_eq!(read(Npz::small().with("discount", one)).criterion(), Criterion::Discounted { discount: 0.5 });
    let horizon = read(Npz::small().with("horizon", integers(&[], &[12])));
    assert_eq!(horizon.criterion(), Criterion::FiniteHorizon { steps: 12, discount: 0.9 });
    let average = Npz::small().without("discount").with("criterion", text("average"));
    assert_eq!(read(average.clone()).criterion(), Criterion::Average);
    let total = Npz::small().with("discount", integers(&[], &[1])).with("features", floats(&[3, 1], &[1.0, 2.0, 0.0]));
    assert_eq!(read(total).criterion(), Criterion::TotalReward);

    assert_refused(average.clone().with("horizon", integers(&[], &[3])).read(), "which takes no \"horizon\"");
    assert_refused(
        average.with("criterion", text("best")).read(),
        "key \"criterion\" is \"best\"; expected \"average\"",
    );
    assert_refused(Npz::small().without("discount").read(), "key \"discount\" is missing; the file has [");
    assert_refused(
        Npz::small().with("discount", floats(&[2], &[0.5, 0.5])).read(),
        "has shape [2]; expected a single number",
    );
    assert_refused(Npz::small().with("discount", floats(&[], &[1.2])).read(), "the discount is 1.2");
    assert_refused(
        Npz::small().with("horizon", integers(&[], &[-1])).read(),
        "key \"horizon\" is -1; expected at least 1",
    );
    assert_refused(
        Npz::small().with("horizon", floats(&[], &[2.5])).read(),
        "key \"horizon\"[0] is 2.5; expected an integer",
    );

    let simplex = Npz::small().with("context_space", text("{\"simplex\": {\"dimension\": 4}}"));
    assert_eq!(*read(simplex.clone()).context_space(), ContextSpace::Simplex { dimension: 4 });
    let bounds =
        Npz::small().with("context_lower", floats(&[2], &[0.0, 1.0])).with("context_upper", floats(&[2], &[0.5, 2.0]));
    let expected = ContextSpace::Box { lower: vec![0.0, 1.0], upper: vec![0.5, 2.0] };
    assert_eq!(*read(bounds.clone()).context_space(), expected);
    assert_refused(bounds.clone().without("context_upper").read(), "key \"context_upper\" is missing");
    assert_refused(bounds.with("context_space", text("\"any\"")).read(), "both say where contexts live");
    assert_refused(
        simplex.with("context_space", text("{\"ball\": 1}")).read(),
        "key \"context_space\" is not the JSON expected",
    );
    let names = Npz::small().with("names", text("{\"actions\": [\"left\", \"right\"]}"));
    assert_eq!(read(names.clone()).names().actions, ["left", "right"]);
    assert_refused(
        names.with("names", text("{\"actions\": [\"left\"]}")).read(),
        "action names has shape [1]; expected [2]",
    );
}

#[test]
fn the_file_of_icu_sepsis_is_understood() {
    // As the package writes it, in small: 0 and 1 are patients, 2 death, 3 survival, 4 the end.
    let mut transitions = vec![0.0; 5 * 2 * 5];
    let mut set = |s: usize, a: usize, row: [f64; 5]| transitions[(s * 2 + a) * 5..][..5].copy_from_slice(&row);
    for a in 0..2 {
        set(0, a, [0.0, 0.5, 0.25, 0.25, 0.0]);
        set(1, a, [0.0, 0.0, 0.5, 0.5, 0.0]);
        [2, 3, 4].into_iter().for_each(|s| set(s, a, [0.0, 0.0, 0.0, 0.0, 1.0]));
    }
    let rewards: Vec<f64> = (0..50).map(|i| f64::from(u8::from(i % 5 == 3 && i / 10 < 4))).collect();
    let npz = Npz(Vec::new())
        .with("tx_mat", floats(&[5, 2, 5], &transitions))
        .with("r_mat", floats(&[5, 2, 5], &rewards))
        .with("d_0", floats(&[5], &[0.5, 0.5, 0.0, 0.0, 0.0]))
        .with("expert_policy", floats(&[5, 2], &[0.5; 10]))
        .with("state_cluster_centers", floats(&[5, 1], &[0.0; 5]))
        .with("sofa_scores", floats(&[5], &[0.0; 5]));
    let model = npz.read().unwrap();
    assert_eq!(model.criterion(), Criterion::TotalReward);
    assert!(*model.features() == Features::per_state(5, 1, vec![0.0, 0.0, 0.0, 1.0, 0.0]).unwrap());
    assert_eq!(model.names().features, ["survival"]);
    let discounted = npz.clone().with("discount", floats(&[], &[0.9])).read().unwrap();
    assert_eq!(discounted.criterion(), Criterion::Discounted { discount: 0.9 });

    let mut uneven = rewards;
    uneven[3] = 2.0;
    let refused = npz.with("r_mat", floats(&[5, 2, 5], &uneven)).read();
    assert_refused(refused, "key \"r_mat\" pays differently for entering state 3");
    let refused = Npz::small().with("sofa_scores", floats(&[3], &[0.0; 3])).read();
    assert_refused(refused, "unknown key \"sofa_scores\"");
}

#[test]
fn wrong_arrays_are_named_with_their_place() {
    let refused = |key: &str, bytes: Vec<u8>| Npz::small().with(key, bytes).read();
    assert_refused(
        refused("transitions", floats(&[3, 2, 4], &[0.0; 24])),
        "key \"transitions\" has shape [3, 2, 4]; expected [s, a, s]",
    );
    let message = Npz::small().with("transitions", floats(&[3, 2, 4], &[0.0; 24])).read().unwrap_err().to_string();
    assert!(message.ends_with("model.npz: key \"transitions\" has shape [3, 2, 4]; expected [s, a, s]"), "{message}");
    assert_refused(
        refused("features", floats(&[2, 2], &[0.0; 4])),
        "key \"features\" has shape [2, 2]; expected [3, k]",
    );
    assert_refused(refused("features", floats(&[3, 0], &[])), "with k at least 1");
    assert_refused(refused("features", floats(&[3, 1], &[0.0, f64::NAN, 0.0])), "features[1] is NaN");
    assert_refused(
        refused("initial", floats(&[3, 1], &INITIAL)),
        "key \"initial\" has shape [3, 1]; expected a vector",
    );
    assert_refused(refused("initial", floats(&[4], &[0.25; 4])), "initial has shape [4]; expected [3]");
    assert_refused(refused("initial", floats(&[3], &[0.5, 0.75, 0.0])), "start distribution sums to 1.25");
    assert_refused(refused("initial", floats(&[0], &[])), "initial has shape [0]; expected [3]");
    assert_refused(refused("transitions", floats(&[0, 2, 0], &[])), "0 states and 2 actions");
    let mut negative = TRANSITIONS;
    negative[6..9].copy_from_slice(&[-0.5, 0.5, 1.0]);
    assert_refused(
        refused("transitions", floats(&[3, 2, 3], &negative)),
        "state 1, action 0: the probability of state 0 is -0.5",
    );
    assert_refused(refused("transitions", text("dense")), "key \"transitions\" has shape []");
    assert_refused(
        refused("initial", npy("<U1", &[3], npyz::Order::C, vec!["a".to_owned(); 3])),
        "holds <U1 elements; expected numbers",
    );
    assert_refused(refused("names", integers(&[], &[3])), "holds <i8 elements; expected a string");
    let huge = npy("<u8", &[3], npyz::Order::C, vec![u64::MAX, 0, 0]);
    assert_refused(refused("initial", huge), "key \"initial\"[0] is 18446744073709551615; expected a number");
    let inexact = integers(&[3, 1], &[0, 0, (1 << 53) + 1]);
    assert_refused(refused("features", inexact), "key \"features\"[2] is 9007199254740993");
}

#[test]
fn wrong_compressed_rows_are_named_with_their_place() {
    let (indptr, indices, data) = compressed_rows();
    let n = data.len() as u64;
    let refused = |key: &str, bytes: Vec<u8>| Npz::compressed().with(key, bytes).read();
    let mut changed = indices.clone();
    changed[3] = -1;
    assert_refused(
        refused("indices", integers(&[n], &changed)),
        "state 0, action 1: successor state -1 does not exist",
    );
    changed[3] = 1 << 40;
    assert_refused(refused("indices", integers(&[n], &changed)), "successor state 1099511627776 does not exist");
    let mut changed = indptr.clone();
    changed[2] = 2;
    assert_refused(refused("indptr", integers(&[7], &changed)), "key \"indptr\"[2] is 2; expected at least 3");
    changed[0] = 1;
    assert_refused(refused("indptr", integers(&[7], &changed)), "key \"indptr\"[0] is 1; expected 0");
    assert_refused(refused("indptr", integers(&[0], &[])), "expected one number more than there are rows");
    assert_refused(refused("indptr", integers(&[6], &indptr[..6])), "has 5 rows, which the 3 states");
    changed = indptr.clone();
    changed[6] = 1 << 50;
    assert_refused(
        refused("indptr", integers(&[7], &changed)),
        "key \"indices\" has shape [10]; expected [1125899906842624]",
    );
    assert_refused(refused("data", floats(&[n - 1], &data[1..])), "key \"data\" has shape [9]; expected [10]");
    assert_refused(
        refused("indices", integers(&[n - 1], &indices[1..])),
        "key \"indices\" has shape [9]; expected [10]",
    );
    assert_refused(
        refused("transitions", floats(&[3, 2, 3], &TRANSITIONS)),
        "keys \"transitions\" and \"indptr\" both give",
    );
    assert_refused(Npz::compressed().without("data").read(), "key \"data\" is missing");
}

#[test]
fn missing_and_unknown_keys() {
    let missing = message(Npz::small().without("initial").read());
    assert_eq!(missing, "key \"initial\" is missing; the file has [\"discount\", \"features\", \"transitions\"]");
    assert_refused(
        Npz::small().without("transitions").read(),
        "key \"transitions\" or \"indptr\" or \"kernels\" or \"indptr_0\" is missing",
    );
    assert_refused(Npz::small().without("features").read(), "key \"features\" or \"features_indptr\" is missing");
    let unknown = |key: &str| message(Npz::small().with(key, floats(&[], &[0.0])).read());
    assert_eq!(unknown("transition"), "unknown key \"transition\"; the nearest known key is \"transitions\"");
    assert_eq!(unknown("gamma_discount"), "unknown key \"gamma_discount\"; the nearest known key is \"discount\"");
    assert_eq!(unknown("indptr_00"), "unknown key \"indptr_00\"; the nearest known key is \"indptr\"");
    assert!(read_bytes(&Npz(Vec::new()).bytes(CompressionMethod::Stored)).is_err(), "an archive of nothing");
}

#[test]
fn headers_that_claim_too_much() {
    let refused = |header: &str, data: &[u8]| Npz::small().with("initial", npy_with_header(header, data)).read();
    let data = [0; 24];
    assert_refused(
        refused("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", &data),
        "key \"initial\" holds Python objects (dtype object), which only unpickling could restore",
    );
    assert_refused(
        refused("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }", &data),
        "key \"initial\" has a structured dtype",
    );
    assert_refused(refused("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", &data), "negative length");
    assert_refused(
        refused("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", &[0; 48]),
        "has elements of type \"<c16\"; expected bool, an integer, float32 or float64",
    );
    assert_refused(refused("{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }", &data), "type \"<f2\"");
    assert_refused(
        refused("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", &data),
        "has shape [1000000000000] of <f8, which does not fit its 24 bytes of data",
    );
    assert_refused(
        refused("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 2), }", &data),
        "which does not fit its 24 bytes",
    );
    assert_refused(
        refused("{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", &data),
        "does not fit its 24 bytes",
    );
    assert_refused(refused("{'descr': '<f8', 'shape': (3,), }", &data), "has a header that cannot be read");
    assert_refused(refused(&"[".repeat(60_000), &data), "has a header that cannot be read (at byte 0 of 60000)");
    let mut long = npy_with_header("{}", &data);
    long[8..10].copy_from_slice(&60_000_u16.to_le_bytes());
    assert_refused(Npz::small().with("initial", long).read(), "claims a header of 60000 bytes in an entry of 36");
    let mut version_two = b"\x93NUMPY\x02\x00".to_vec();
    version_two.extend(u32::MAX.to_le_bytes());
    version_two.extend([b' '; 100]);
    assert_refused(Npz::small().with("initial", version_two).read(), "claims a header of 4294967295 bytes");
    assert_refused(
        Npz::small().with("initial", b"\x93NUMPY\x09\x00ab".to_vec()).read(),
        "has version 9 of the .npy format",
    );
    assert_refused(Npz::small().with("initial", vec![0; 100]).read(), "does not begin with NumPy's mark");
    assert_refused(Npz::small().with("initial", Vec::new()).read(), "it has only 0 bytes");
}

/// Where the local and the central header of an entry begin.
fn headers_of(archive: &[u8], entry: &str) -> (usize, usize) {
    let find = |mark: &[u8], name_at: usize| {
        let fits =
            |&at: &usize| archive[at..].starts_with(mark) && archive[at + name_at..].starts_with(entry.as_bytes());
        (0..archive.len() - name_at).find(fits).unwrap()
    };
    (find(b"PK\x03\x04", 30), find(b"PK\x01\x02", 46))
}

#[test]
fn archives_with_odd_entries() {
    let bytes = Npz::small().bytes(CompressionMethod::Deflated);
    let (local, central) = headers_of(&bytes, "initial.npy");

    let twice = Npz::small().with("initiaX", floats(&[3], &INITIAL)).bytes(CompressionMethod::Stored);
    let mut duplicate = twice.clone();
    for at in 0..twice.len() - 7 {
        if twice[at..].starts_with(b"initiaX") {
            duplicate[at..at + 7].copy_from_slice(b"initial");
        }
    }
    assert_refused(read_bytes(&duplicate), "has two entries of the same name");

    let mut encrypted = bytes.clone();
    encrypted[local + 6] |= 1;
    encrypted[central + 8] |= 1;
    assert_refused(read_bytes(&encrypted), "entry \"initial.npy\" is encrypted");

    for (code, name) in [(12, "bzip2"), (14, "lzma"), (93, "zstd"), (6, "Unsupported(6)")] {
        let mut packed = bytes.clone();
        packed[local + 8] = code;
        packed[central + 10] = code;
        assert_refused(read_bytes(&packed), &format!("is compressed with {name}; expected none or deflate"));
    }

    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("../initial.npy", SimpleFileOptions::default()).unwrap();
    assert_refused(read_bytes(&zip.finish().unwrap().into_inner()), "entry \"../initial.npy\" is in a folder");
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("readme.txt", SimpleFileOptions::default()).unwrap();
    assert_refused(read_bytes(&zip.finish().unwrap().into_inner()), "its name does not end in .npy");
}

#[test]
fn archives_that_claim_too_much() {
    // Sizes in the central directory: packed at byte 20, unpacked at byte 24.
    let bytes = Npz::small().bytes(CompressionMethod::Deflated);
    let (_, central) = headers_of(&bytes, "initial.npy");
    let mut swollen = bytes.clone();
    swollen[central + 24..central + 28].copy_from_slice(&0xF000_0000_u32.to_le_bytes());
    assert_refused(read_bytes(&swollen), "entry \"initial.npy\" claims to hold 4026531840 bytes");

    let stored = Npz::small().bytes(CompressionMethod::Stored);
    let (_, central) = headers_of(&stored, "initial.npy");
    let mut overlapping = stored.clone();
    for at in [20, 24] {
        overlapping[central + at..central + at + 4].copy_from_slice(&(stored.len() as u32).to_le_bytes());
    }
    assert_refused(read_bytes(&overlapping), "bytes of entries in a file of");

    // An entry that unpacks to more than its directory says: what is beyond is not read, and the entry is refused.
    let mut bomb = floats(&[3], &INITIAL);
    let size = bomb.len() as u32;
    bomb.extend(vec![0; 1 << 22]);
    let mut bomb = Npz::small().with("initial", bomb).bytes(CompressionMethod::Deflated);
    let (_, central) = headers_of(&bomb, "initial.npy");
    bomb[central + 24..central + 28].copy_from_slice(&size.to_le_bytes());
    assert_refused(read_bytes(&bomb), "key \"initial\" cannot be read");

    // One that says so is refused by its own header.
    let mut zeros = floats(&[3], &INITIAL);
    zeros.extend(vec![0; 1 << 22]);
    let zeros = Npz::small().with("initial", zeros).bytes(CompressionMethod::Deflated);
    assert_refused(read_bytes(&zeros), "which does not fit its 4194328 bytes of data");
}

#[test]
fn damaged_data_is_noticed_by_its_checksum() {
    let bytes = Npz::small().bytes(CompressionMethod::Stored);
    let half = 0.25_f64.to_le_bytes();
    let mut damaged = bytes.clone();
    for at in 0..bytes.len() - 8 {
        if bytes[at..at + 8] == half {
            damaged[at..at + 8].copy_from_slice(&0.25_f64.next_up().to_le_bytes());
        }
    }
    assert_refused(read_bytes(&damaged), "Invalid checksum");
}

/// The header of a safetensors file as JSON, and its tensors.
fn split(bytes: &[u8]) -> (String, Vec<u8>) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (String::from_utf8(bytes[8..8 + length].to_vec()).unwrap(), bytes[8 + length..].to_vec())
}

fn join(json: &str, data: &[u8]) -> Vec<u8> {
    [&(json.len() as u64).to_le_bytes(), json.as_bytes(), data].concat()
}

/// A safetensors file of [`small_model`] with its header changed.
fn with_header(from: &str, to: &str) -> Vec<u8> {
    let (json, data) = split(&bytes_of(&small_model(), "safetensors"));
    assert!(json.contains(from), "{from} in {json}");
    join(&json.replace(from, to), &data)
}

/// The same with one number of a tensor changed.
fn with_number(tensor: &str, index: usize, number: &[u8]) -> Vec<u8> {
    with_number_in(&small_model(), tensor, index, number)
}

fn with_number_in(model: &Cmdp, tensor: &str, index: usize, number: &[u8]) -> Vec<u8> {
    let (json, mut data) = split(&bytes_of(model, "safetensors"));
    let header: serde_json::Value = serde_json::from_str(&json).unwrap();
    let start = header[tensor]["data_offsets"][0].as_u64().unwrap() as usize + index * number.len();
    data[start..start + number.len()].copy_from_slice(number);
    join(&json, &data)
}

#[test]
fn safetensors_say_what_they_are() {
    assert_refused(
        read_bytes(&with_header("\"version\":\"1\"", "\"version\":\"2\"")),
        "has version \"2\" of coirl-model; this build reads version \"1\"",
    );
    assert_refused(read_bytes(&with_header("\"version\":\"1\",", "")), "does not say its version");
    assert_refused(read_bytes(&with_header("coirl-model", "other-model")), "does not say \"format\": \"coirl-model\"");
    assert_refused(read_bytes(&with_header("\\\"n_actions\\\"", "\\\"m_actions\\\"")), "unreadable model header");
    assert_refused(
        read_bytes(&with_header("\\\"n_states\\\":3", "\\\"n_states\\\":1000000000000")),
        "tensor \"initial\" is F64 of shape [3]; expected F64 of shape [1000000000000]",
    );
    assert_refused(
        read_bytes(&with_header("\\\"n_actions\\\":2", "\\\"n_actions\\\":1000000000000")),
        "tensor \"admissible\" is BOOL of shape [3, 2]; expected BOOL of shape [3, 1000000000000]",
    );
    let clusters = with_header("\\\"shared\\\"", "{\\\"clusters\\\":{\\\"n_kernels\\\":1000000000000}}");
    assert_refused(read_bytes(&clusters), "tensor \"cluster.0.pair_row\" is missing; the file has [");
    let (json, data) = split(&bytes_of(&small_model(), "safetensors"));
    let claims = json.replace("\"shape\":[3]", "\"shape\":[1000000000000]");
    assert!(claims != json);
    assert!(read_bytes(&join(&claims, &data)).is_err());
    let overflows = json.replace("\"shape\":[3]", "\"shape\":[4294967296,4294967296,2]");
    assert_refused(read_bytes(&join(&overflows, &data)), "unreadable header");
    assert_refused(read_bytes(&join(&json, &[&data[..], &[0]].concat())), "bytes of tensors after byte");
    let mut long = join(&json, &data);
    long[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_refused(read_bytes(&long), "claims a header of 18446744073709551615 bytes in a file of");
    let end = data.len();
    let extra = format!(",\"initiol\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{end},{}]}}}}", end + 1);
    let extra = json.trim_end().strip_suffix('}').unwrap().to_owned() + &extra;
    assert_refused(
        read_bytes(&join(&extra, &[&data[..], &[0]].concat())),
        "unknown tensor \"initiol\"; the nearest that this model has is \"initial\"",
    );
}

#[test]
fn safetensors_cannot_hold_an_invalid_model() {
    let changed = |tensor: &str, index, number: &[u8]| read_bytes(&with_number(tensor, index, number));
    let word = |x: u32| x.to_le_bytes();
    assert_refused(
        changed("kernel.probabilities", 1, &0.5_f64.to_le_bytes()),
        "state 0, action 0: the transition probabilities sum to 1.25",
    );
    assert_refused(changed("kernel.probabilities", 0, &f64::NAN.to_le_bytes()), "the probability of state 0 is NaN");
    assert_refused(changed("kernel.next", 2, &word(3)), "state 0, action 0: successor state 3 does not exist");
    assert_refused(changed("kernel.next", 1, &word(0)), "next has shape another order in row 0");
    assert_refused(
        changed("kernel.pair_row", 0, &word(1)),
        "pair_row has shape 1; expected a row from 0 to 0 for pair 0",
    );
    assert_refused(changed("kernel.pair_row", 5, &word(u32::MAX)), "pair_row has shape 4294967295");
    assert_refused(changed("kernel.state_rows", 1, &word(1)), "state_rows has shape 1; expected 2 after state 0");
    assert_refused(changed("kernel.state_rows", 0, &word(u32::MAX)), "state_rows has shape 4294967295 to");
    assert_refused(changed("kernel.row_start", 1, &u64::MAX.to_le_bytes()), "row_start");
    assert_refused(changed("kernel.row_start", 1, &0_u64.to_le_bytes()), "row_start has shape none in row 0");
    assert_refused(changed("admissible", 0, &[2]), "tensor \"admissible\"[0] is neither 0 nor 1");
    assert_refused(
        changed("admissible", 0, &[0]),
        "tensor \"kernel.pair_row\" is U32 of shape [6]; expected U32 of shape [5]",
    );
    assert_refused(changed("initial", 0, &0.5_f64.to_le_bytes()), "start distribution sums to 1.25");
    assert_refused(changed("features", 3, &f64::INFINITY.to_le_bytes()), "features[3] is inf");
    assert_refused(changed("discount", 0, &1.5_f64.to_le_bytes()), "the discount is 1.5");
    assert_refused(changed("discount", 0, &1_f64.to_le_bytes()), "the discount is 1;");
    let (json, data) = split(&bytes_of(&small_model(), "safetensors"));
    assert_refused(
        read_bytes(&join(&json.replace("\"F64\"", "\"I64\""), &data)),
        "is I64 of shape [3]; expected F64 of shape [3]",
    );
}

#[test]
fn truncated_files_are_refused() {
    let folder = folder();
    for (kind, model) in models().into_iter().filter(|(kind, _)| !kind.starts_with("compressed")) {
        for format in FORMATS {
            let path = folder.path().join(format!("model.{format}"));
            write_model(&path, &model).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            let size = file.metadata().unwrap().len();
            for end in (0..size).step_by(7).collect::<Vec<_>>().into_iter().rev() {
                file.set_len(end).unwrap();
                assert!(read_model(&path).is_err(), "{kind}, {format}, {end} of {size} bytes");
            }
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let small = small_model();
    let (_, mixture) = models().into_iter().find(|(kind, _)| *kind == "mixture").unwrap();
    let files = [
        bytes_of(&small, "npz"),
        bytes_of(&small, "safetensors"),
        bytes_of(&mixture, "safetensors"),
        Npz::compressed().bytes(CompressionMethod::Deflated),
    ];
    let folder = folder();
    for (i, bytes) in files.into_iter().enumerate() {
        let path = folder.path().join(format!("model-{i}.npz"));
        std::fs::write(&path, &bytes).unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        for (at, &kept) in bytes.iter().enumerate() {
            for written in [kept ^ 1, kept ^ 0x80, !kept, kept] {
                file.seek(SeekFrom::Start(at as u64)).unwrap();
                file.write_all(&[written]).unwrap();
                // Some bytes, such as those of a timestamp, mean nothing: a model may still come out, and is a sound one.
                if let Ok(model) = read_model(&path) {
                    let sum: f64 = model.initial().iter().sum();
                    assert!((sum - 1.0).abs() < 1e-8);
                }
            }
        }
    }
}

#[test]
fn paths_that_hold_no_model() {
    let folder = folder();
    let file = |name: &str, content: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let refused = |path: &Path| read_model(path).unwrap_err().to_string();
    assert!(refused(folder.path()).ends_with("is a folder; expected a .npz or .safetensors file"));
    let missing = folder.path().join("none.npz");
    assert!(matches!(read_model(&missing), Err(Error::Io { path, .. }) if path == missing));
    assert!(refused(&file("empty.npz", b"")).ends_with("is empty; expected a .npz or .safetensors file"));
    assert!(refused(&file("a.npz", b"hello, world")).ends_with("is neither a .npz archive nor a .safetensors file"));
    assert!(refused(&file("b.npz", b"PK\x03\x04")).contains("is no readable .npz archive"));
    assert!(refused(&file("c.npz", &floats(&[3], &INITIAL))).contains("is a single NumPy array"));
    // The content decides, not the name.
    let path = file("misnamed.safetensors", &bytes_of(&small_model(), "npz"));
    assert!(read_model(&path).unwrap() == small_model());
    for name in ["model", "model.npy", "model.NPZ"] {
        let refused = write_model(&folder.path().join(name), &small_model()).unwrap_err().to_string();
        assert!(refused.ends_with("does not end in .npz or .safetensors, the two formats of a model"), "{refused}");
        assert!(!folder.path().join(name).exists());
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let folder = folder();
    for format in FORMATS {
        let nowhere = folder.path().join("none").join(format!("model.{format}"));
        assert!(matches!(write_model(&nowhere, &small_model()), Err(Error::Io { .. })));
        assert!(names_in(folder.path()).is_empty());

        // A folder cannot be replaced by a file.
        let taken = folder.path().join(format!("taken.{format}"));
        std::fs::create_dir(&taken).unwrap();
        assert!(matches!(write_model(&taken, &small_model()), Err(Error::Io { .. })));
        assert_eq!(names_in(folder.path()), [format!("taken.{format}")]);
        std::fs::remove_dir(&taken).unwrap();
    }

    let path = folder.path().join("notes.txt");
    write_atomically(&path, |file| file.write_all(b"old")).unwrap();
    let failed = write_atomically(&path, |file| {
        file.write_all(b"half of the new")?;
        Err(std::io::Error::other("the disk is full"))
    });
    assert!(failed.unwrap_err().to_string().ends_with("notes.txt: the disk is full"));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(names_in(folder.path()), ["notes.txt"]);
    write_atomically(&path, |file| file.write_all(b"new")).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(names_in(folder.path()), ["notes.txt"]);
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_stays_as_it_was() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write anywhere, and then there is nothing to see.
    if std::fs::write(closed.join("probe"), b"").is_err() {
        for format in FORMATS {
            assert!(matches!(write_model(&closed.join(format!("m.{format}")), &small_model()), Err(Error::Io { .. })));
        }
        assert!(names_in(&closed).is_empty());
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}
