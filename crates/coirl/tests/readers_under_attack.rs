//! Whatever the bytes of a file are, every reader of the library ends: with what the file holds, or with one error that names the file. It does
//! not panic, and its memory stays within a multiple of the file and a constant; of compressed files within [`unpacked_limit`]. What is accepted
//! can be written, and is then read as the same.
#![allow(missing_docs, clippy::unwrap_used)]

mod effort;
mod mutations;

use coirl::Error;
use coirl::agent::{
    Agent, Choice, ClonedNetwork, ClonedPolicy, Inputs, KnownContexts, Mixture as MixedAgent, NearestActions,
    NearestWeights, SoftMapping,
};
use coirl::artifact::{
    array_keys, is_fitted, is_library, read_all_numbers, read_checkpoint, read_fitted, read_library, read_model,
    read_numbers, read_text, unpacked_limit, write_checkpoint, write_fitted, write_library, write_model,
};
use coirl::demos::{Demonstration, Estimator, Train};
use coirl::domains::Garnet;
use coirl::learn::{
    Bundle, CuttingPlane, Ellipsoid, EvolutionStrategies, MirrorDescent, Neural, Problem, Record, Recorder, Snapshot,
    Watch,
};
use coirl::mapping::{LinearMapping, NeuralMapping};
use coirl::methods::{Checkpoint, Fitted, Method, Settings, fit, resume};
use coirl::model::{
    ActionId, Clusters, Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, Mixture, Names, Pairs, SparseRows,
};
use coirl::network::{Architecture, Layer, Network, Standardisation};
use coirl::objective::ObjectiveChoice;
use coirl::transfer::Transfer;
use coirl_cohort::Spec;
use coirl_experiments::{Experiment, Scale};
use effort::{Tally, effort, seed};
use mutations::{nested, of_format, raw, read_archive, write_archive};
use peak_alloc::PeakAlloc;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;
/// One reader at a time: the peak is that of the whole process.
static READING: Mutex<()> = Mutex::new(());

/// Bytes of memory that a byte of a file may cost, and what any file may cost. A number of JSON is two bytes in the file and 32 in a tree
/// whose lists grow by doubling.
const MOST_PER_BYTE: usize = 100;
const MOST_BESIDES: usize = 4 << 20;
/// Characters of a message.
const LONGEST_MESSAGE: usize = 4500;

/// What a reader makes of a file; an accepted one is written and read again.
type Read<'a> = &'a dyn Fn(&Path) -> coirl::Result<()>;

/// Reads a file and checks what is promised of any. Gives the message of a refusal, and the bytes of memory it took.
fn attempt(what: &str, path: &Path, read: Read<'_>) -> (Option<String>, usize) {
    let _alone = READING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let ended = catch_unwind(AssertUnwindSafe(|| read(path)));
    let memory = HEAP.peak_usage().saturating_sub(before);
    let Ok(ended) = ended else { panic!("{what}: the reader panicked; the file is {}", kept(path)) };
    let message = ended.err().map(|error| error.to_string());
    if let Some(message) = &message {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(message.contains(name), "{what}: the message does not name {name}: {message}");
        // Complaints about settings quote them; the command line shortens what it shows.
        let is_settings = name.ends_with(".toml");
        assert!(
            is_settings || message.len() < LONGEST_MESSAGE,
            "{what}: a message of {} bytes: {message:.300}",
            message.len()
        );
    }
    (message, memory)
}

/// A copy that outlives the test.
fn kept(path: &Path) -> String {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(path.file_name().unwrap());
    let _ = std::fs::copy(path, &copy);
    copy.display().to_string()
}

/// Spoils files of a format again and again and reads them.
fn attack(name: &'static str, format: &str, seeds: &[Vec<u8>], attempts: u64, read: Read<'_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("spoilt.{format}"));
    let mut tally = Tally::new(name, "files");
    for bytes in seeds {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(attempt(&format!("{name}: a sound file"), &path, read).0, None);
    }
    let mut refused = 0;
    for i in 0..effort(attempts) {
        let mut random = tally.random(i);
        let from = &seeds[i as usize % seeds.len()];
        let other = &seeds[(i as usize + 1) % seeds.len()];
        let bytes = of_format(&mut random, format, from, other);
        std::fs::write(&path, &bytes).unwrap();
        let what = format!("{name}: seed {}, attempt {i}", seed());
        let (message, memory) = attempt(&what, &path, read);
        refused += u64::from(message.is_some());
        let most = MOST_PER_BYTE * bytes.len() + MOST_BESIDES;
        assert!(memory <= most, "{what}: {memory} bytes of memory for {}: {}", bytes.len(), kept(&path));
        tally.tried(1);
        tally
            .largest("bytes of heap per byte of the file and 64 KiB", memory as f64 / (bytes.len() + (1 << 16)) as f64);
    }
    assert!(refused * 4 > effort(attempts), "{name}: {refused} files were refused, so few that little was tried");
    tally.largest("share refused", refused as f64 / effort(attempts) as f64);
}

/// Cuts a file at every place, or at some of many.
fn cut_everywhere(name: &'static str, format: &str, bytes: &[u8], read: Read<'_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("cut.{format}"));
    let mut tally = Tally::new(name, "cuts");
    let step = (bytes.len() as u64 / effort(150)).max(1) as usize;
    for n in (0..bytes.len()).step_by(step) {
        std::fs::write(&path, &bytes[..n]).unwrap();
        let (message, _) = attempt(&format!("{name}: cut after {n} bytes"), &path, read);
        assert!(message.is_some(), "{name}: accepted after {n} of {} bytes", bytes.len());
        tally.tried(1);
    }
}

fn bytes_of(extension: &str, write: impl FnOnce(&Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed").with_extension(extension);
    write(&path);
    std::fs::read(path).unwrap()
}

fn garnet(seed: u64) -> Cmdp {
    Garnet { n_states: 12, n_features: 3, seed, ..Garnet::default() }.build().unwrap()
}

fn kernel(seed: u64) -> Kernel {
    let Dynamics::Shared(kernel) = garnet(seed).dynamics().clone() else { panic!("a garnet has one kernel") };
    kernel
}

fn per_pair(pairs: &Pairs) -> Features {
    let row_start = (0..=pairs.len()).collect();
    let feature = (0..pairs.len() as u32).map(|i| i % 3).collect();
    let value = (0..pairs.len()).map(|i| (i as f64).sin()).collect();
    Features::per_pair(pairs, SparseRows::new(3, row_start, feature, value).unwrap()).unwrap()
}

/// Every kind of dynamics, features, criteria and contexts.
fn models() -> Vec<Cmdp> {
    let plain = garnet(1);
    let (features, initial) = (plain.features().clone(), plain.initial().to_vec());
    let discounted = Criterion::discounted(0.9).unwrap();
    let of = |dynamics, features, criterion| Cmdp::new(dynamics, features, initial.clone(), criterion).unwrap();
    let clusters = Clusters::new(vec![kernel(1), kernel(2)], vec![vec![0.0, 0.25], vec![1.0, 0.5]]).unwrap();
    let names = Names {
        model: "a garnet".into(),
        features: vec!["a".into(), "b".into(), "c".into()],
        contexts: vec!["x".into(), "y".into()],
        ..Names::default()
    };
    let bounds = ContextSpace::Box { lower: vec![0.0, -1.0], upper: vec![1.0, 1.0] };
    let known = (0..plain.pairs().len()).map(|pair| pair % 4 != 3).collect();
    let sparse = per_pair(plain.pairs());
    vec![
        plain.clone().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap().with_names(names).unwrap(),
        of(Dynamics::Clusters(clusters), sparse.clone(), discounted),
        of(Dynamics::Mixture(Mixture::new(&[kernel(1), kernel(2)]).unwrap()), features.clone(), discounted),
        of(Dynamics::Shared(kernel(3)), sparse, Criterion::finite_horizon(5, 1.0).unwrap()),
        of(Dynamics::Shared(kernel(3)), features, Criterion::Average).with_context_space(bounds).unwrap(),
        plain.with_known_pairs(known).unwrap(),
    ]
}

fn model_files(extension: &str) -> Vec<Vec<u8>> {
    models().iter().map(|model| bytes_of(extension, |path| write_model(path, model).unwrap())).collect()
}

fn read_model_twice(path: &Path) -> coirl::Result<()> {
    let model = read_model(path)?;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.safetensors");
    write_model(&copy, &model).unwrap();
    assert_eq!(read_model(&copy).unwrap(), model);
    Ok(())
}

#[test]
fn spoilt_model_archives_are_refused_or_read() {
    attack("models in npz", "npz", &model_files("npz"), 800, &read_model_twice);
}

#[test]
fn spoilt_model_tensors_are_refused_or_read() {
    attack("models in safetensors", "safetensors", &model_files("safetensors"), 800, &read_model_twice);
}

#[test]
fn models_that_end_early_are_refused() {
    for format in ["npz", "safetensors"] {
        for bytes in &model_files(format)[..2] {
            cut_everywhere("models cut", format, bytes, &|path| read_model(path).map(drop));
        }
    }
}

/// An array as NumPy writes it.
fn array(element: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), data].concat()
}

fn doubles(shape: &str, n: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..n).flat_map(|i| (i as f64 / 7.0).to_le_bytes()).collect();
    array("<f8", shape, &data)
}

#[test]
fn spoilt_arrays_are_refused_or_read() {
    let seeds = [doubles("(4, 3)", 12), doubles("(7,)", 7), array("|b1", "(2, 2, 2)", &[0, 1, 1, 0, 1, 1, 0, 0])];
    attack("arrays", "npy", &seeds, 900, &|path| {
        let (shape, values) = read_numbers(path, "points")?;
        assert_eq!(shape.iter().product::<usize>(), values.len());
        Ok(())
    });
}

#[test]
fn spoilt_archives_of_arrays_are_refused_or_read() {
    let entries = [("states.npy", doubles("(4, 3)", 12)), ("actions.npy", doubles("(4, 2)", 8))];
    let entries: Vec<(String, Vec<u8>)> = entries.map(|(name, array)| (name.to_owned(), array)).to_vec();
    let seeds = [CompressionMethod::Stored, CompressionMethod::Deflated].map(|how| write_archive(&entries, how));
    attack("archives of arrays", "npz", &seeds, 500, &|path| {
        let keys = array_keys(path)?;
        let all = read_all_numbers(path)?;
        assert_eq!(all.iter().map(|array| array.name.clone()).collect::<Vec<_>>(), keys);
        for array in all {
            let (shape, values) = read_numbers(path, &array.name)?;
            assert_eq!((shape, values.len()), (array.shape, array.values.len()));
        }
        Ok(())
    });
}

/// Keeps a checkpoint and goes no further.
struct Keeper(Option<Checkpoint>);

impl Recorder for Keeper {
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        if record.step == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.0 = Some(snapshot.checkpoint::<Method>()?);
        Ok(ControlFlow::Break(()))
    }
}

fn small_model() -> Cmdp {
    garnet(5).with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap()
}

fn demonstrations(model: &Cmdp) -> Train {
    let contexts = model.context_space().sample(8, 3).unwrap();
    let shown = contexts.into_iter().enumerate().map(|(i, context)| {
        let mu = (0..3).map(|j| ((i + 3 * j) as f64).cos()).collect();
        Demonstration::from_feature_expectations(model, context, mu).unwrap()
    });
    Train::new(shown.collect())
}

/// What a method knows after a step.
fn stopped(model: &Cmdp, method: Method) -> (Fitted, Checkpoint) {
    let train = demonstrations(model);
    let problem = Problem::new(model, &train, &Estimator::default()).unwrap();
    let mut keeper = Keeper(None);
    let settings = Settings { record_every: Some(1), method, ..Settings::default() };
    let fitted = fit(&problem, &settings, Watch::default(), &mut keeper).unwrap();
    (fitted, keeper.0.unwrap())
}

/// One of each kind.
fn agents(mapping: LinearMapping) -> Vec<Agent> {
    let twice = LinearMapping::new(2, 3, mapping.values().iter().map(|w| 2.0 * w).collect()).unwrap();
    let known = || KnownContexts::new(2, vec![0.25, 0.75, 0.5, 0.5]).unwrap();
    let numbers = |n: usize| (0..n).map(|i| 1.0 / (i as f64 + 3.0)).collect::<Vec<_>>();
    let inputs = Inputs { dimension: 2, n_state_inputs: 3, interactions: true };
    let context = || Standardisation { shift: vec![0.5, 0.25], scale: vec![1.0, 2.0] };
    let choice = Choice { masked: true, most_probable: false };
    let network = |inputs: usize, outputs: usize| {
        let hidden = vec![Layer::normalised(4), Layer::leaky(3)];
        let architecture = Architecture { inputs, hidden, outputs, unit_output: false };
        let standard = Standardisation { shift: vec![0.5; inputs], scale: vec![1.0; inputs] };
        let parameters = (0..architecture.n_parameters()).map(|i| 1.0 / (i as f32 - 7.5)).collect();
        Network::new(architecture, standard, parameters, vec![0.75; 8]).unwrap()
    };
    vec![
        Agent::Planned(mapping.clone()),
        Agent::Mixed(MixedAgent::new(vec![0.25, 0.75], vec![mapping.clone(), twice]).unwrap()),
        Agent::Soft(SoftMapping::new(mapping, 0.3).unwrap()),
        Agent::Nearest(NearestWeights::new(known(), numbers(6), Some(0.1)).unwrap()),
        Agent::Cloned(ClonedPolicy::new(inputs, context(), numbers(36), numbers(4 * inputs.len()), choice).unwrap()),
        Agent::ClonedNetwork(ClonedNetwork::new(2, network(5, 4), numbers(36), choice).unwrap()),
        Agent::Copied(NearestActions::new(known(), (0..24).map(|i| ActionId(i % 4)).collect()).unwrap()),
        Agent::Fixed((0..12).map(|i| ActionId(i % 3)).collect()),
        Agent::Uniform,
        Agent::Neural(NeuralMapping::new(network(2, 3))),
    ]
}

#[test]
fn spoilt_results_are_refused_or_read() {
    let (mut fitted, _) = stopped(&small_model(), Method::default());
    let seeds: Vec<Vec<u8>> = agents(fitted.mapping().unwrap().clone())
        .into_iter()
        .map(|agent| {
            fitted.agent = agent;
            bytes_of("safetensors", |path| write_fitted(path, &fitted).unwrap())
        })
        .collect();
    attack("results", "safetensors", &seeds, 600, &|path| {
        let fitted = read_fitted(path)?;
        assert!(is_fitted(path));
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.safetensors");
        write_fitted(&copy, &fitted).unwrap();
        assert_eq!(read_fitted(&copy).unwrap(), fitted);
        Ok(())
    });
    cut_everywhere("results cut", "safetensors", &seeds[1], &|path| read_fitted(path).map(drop));
}

#[test]
fn spoilt_libraries_are_refused_or_read() {
    for (i, model) in models().into_iter().take(3).enumerate() {
        let mapping = LinearMapping::new(2, 3, vec![0.3, -0.2, 0.1, 0.7, 0.5, -0.4]).unwrap();
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&ContextSpace::Simplex { dimension: 2 }.sample(4, 1).unwrap()).unwrap();
        let seeds = [bytes_of("safetensors", |path| write_library(path, &transfer).unwrap())];
        let name = ["libraries, shared", "libraries, clusters", "libraries, mixture"][i];
        attack(name, "safetensors", &seeds, 250, &|path| {
            let read = read_library(path, &model, mapping.clone())?;
            assert!(is_library(path));
            let copy = path.with_file_name("copy.safetensors");
            write_library(&copy, &read).unwrap();
            assert_eq!(read_library(&copy, &model, mapping.clone()).unwrap().n_contexts(), read.n_contexts());
            Ok(())
        });
    }
}

fn interrupted(model: &Cmdp) -> Vec<Checkpoint> {
    let methods = [
        Method::default(),
        Method::MirrorDescent(MirrorDescent::default()),
        Method::EvolutionStrategies(EvolutionStrategies::default()),
        Method::Bundle(Bundle::default()),
        Method::CuttingPlane(CuttingPlane::default()),
        Method::Ellipsoid(Ellipsoid::default()),
        Method::Neural(Neural { objective: ObjectiveChoice::Loss, ..Neural::default() }),
    ];
    methods.into_iter().map(|method| stopped(model, method).1).collect()
}

#[test]
fn spoilt_checkpoints_are_refused_or_read() {
    let model = small_model();
    let seeds: Vec<Vec<u8>> = interrupted(&model)
        .iter()
        .map(|checkpoint| bytes_of("json", |path| write_checkpoint(path, checkpoint).unwrap()))
        .collect();
    attack("checkpoints", "json", &seeds, 700, &|path| {
        let checkpoint = read_checkpoint(path)?;
        let copy = path.with_file_name("copy.json");
        write_checkpoint(&copy, &checkpoint).unwrap();
        read_checkpoint(&copy).map(drop)
    });
    // The end of the line is no part of the tree.
    cut_everywhere("checkpoints cut", "json", seeds[0].trim_ascii_end(), &|path| read_checkpoint(path).map(drop));
}

/// What a method knows is a tree of its own, read only once the run goes on.
#[test]
fn a_run_does_not_go_on_from_a_spoilt_state_or_goes_on() {
    let model = small_model();
    let train = demonstrations(&model);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let mut tally = Tally::new("states of methods", "states");
    let seeds: Vec<serde_json::Value> =
        interrupted(&model).iter().map(|checkpoint| serde_json::to_value(checkpoint).unwrap()).collect();
    let mut refused = 0;
    for i in 0..effort(400) {
        let mut random = tally.random(i);
        let mut spoilt = seeds[i as usize % seeds.len()].clone();
        mutations::tree(&mut random, &mut spoilt["state"]);
        let what = format!("states of methods: seed {}, attempt {i}", seed());
        let Ok(checkpoint) = serde_json::from_value::<Checkpoint>(spoilt) else {
            refused += 1;
            continue;
        };
        let resumed =
            catch_unwind(AssertUnwindSafe(|| resume(&problem, checkpoint, Watch::default(), &mut Keeper(None))));
        refused += u64::from(resumed.unwrap_or_else(|_| panic!("{what}: going on panicked")).is_err());
        tally.tried(1);
    }
    assert!(refused > 0, "no state was refused");
}

#[test]
fn an_index_beyond_the_demonstrations_in_a_checkpoint_panicked() {
    let model = small_model();
    let train = demonstrations(&model);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let (_, checkpoint) = stopped(&model, Method::CuttingPlane(CuttingPlane::default()));
    let sound = serde_json::to_value(&checkpoint).unwrap();
    let go_on = |checkpoint: &serde_json::Value| {
        let checkpoint: Checkpoint = serde_json::from_value(checkpoint.clone()).unwrap();
        resume(&problem, checkpoint, Watch::default(), &mut Keeper(None)).map(drop)
    };
    go_on(&sound).unwrap();
    assert_eq!(sound["state"]["kept"]["indices"].as_array().unwrap().len(), 1);
    let spoil: [fn(&mut serde_json::Value); 3] = [
        |state| state["kept"]["indices"][0] = 8.into(),
        |state| drop(state["kept"]["expectations"].as_array_mut().unwrap().pop()),
        |state| drop(state["iterate"].as_array_mut().unwrap().pop()),
    ];
    for change in spoil {
        let mut spoilt = sound.clone();
        change(&mut spoilt["state"]);
        let error = go_on(&spoilt).unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
    }
}

fn files_of(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == extension));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn read_spec(path: &Path) -> coirl::Result<()> {
    let spec = Spec::from_toml(&read_text(path, "a spec")?).map_err(|error| error.in_file(path))?;
    spec.check().map_err(|error| error.in_file(path))?;
    // Compared as text: options of a learner may be NaN until the learner refuses them, and NaN is not itself.
    let written = spec.to_toml().unwrap();
    assert_eq!(Spec::from_toml(&written).unwrap().to_toml().unwrap(), written);
    Ok(())
}

fn read_experiment(path: &Path) -> coirl::Result<()> {
    let text = read_text(path, "an experiment")?;
    for scale in [Scale::Usual, Scale::Quick, Scale::Paper] {
        let experiment = Experiment::read(&text, scale, &[]).map_err(|error| error.in_file(path))?;
        let written = experiment.to_toml().unwrap();
        assert_eq!(Experiment::read(&written, Scale::Usual, &[]).unwrap().to_toml().unwrap(), written);
    }
    Ok(())
}

#[test]
fn spoilt_specs_are_refused_or_read() {
    let presets = ["ai-clinician", "mimic-sepsis", "coirl-paper"];
    let seeds = presets.map(|name| Spec::preset(name).unwrap().to_toml().unwrap().into_bytes());
    attack("specs", "toml", &seeds, 500, &read_spec);
}

#[test]
fn spoilt_experiments_are_refused_or_read() {
    attack("experiments", "toml", &files_of("experiments", "toml"), 300, &read_experiment);
}

type Reader = Box<dyn Fn(&Path) -> coirl::Result<()>>;

/// All readers of the library, with the format that each expects.
fn readers() -> Vec<(&'static str, Reader)> {
    let model = small_model();
    let mapping = LinearMapping::new(2, 3, vec![0.5; 6]).unwrap();
    vec![
        ("model", Box::new(|path: &Path| read_model(path).map(drop))),
        ("numbers", Box::new(|path: &Path| read_numbers(path, "x").map(drop))),
        ("all numbers", Box::new(|path: &Path| read_all_numbers(path).map(drop))),
        ("result", Box::new(|path: &Path| read_fitted(path).map(drop))),
        ("library", Box::new(move |path: &Path| read_library(path, &model, mapping.clone()).map(drop))),
        ("checkpoint", Box::new(|path: &Path| read_checkpoint(path).map(drop))),
        ("spec", Box::new(read_spec)),
        ("experiment", Box::new(read_experiment)),
    ]
}

/// Every reader refuses the file, in little memory.
fn refused_by_all(path: &Path, most: usize) -> Vec<String> {
    let refused = |(name, read): &(&'static str, Reader)| {
        let (message, memory) = attempt(&format!("{name} of {}", path.display()), path, read);
        assert!(memory <= most, "{name} of {}: {memory} bytes of memory", path.display());
        message.unwrap_or_else(|| panic!("{name} of {}: accepted", path.display()))
    };
    readers().iter().map(refused).collect()
}

#[test]
fn folders_devices_and_pipes_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    for message in refused_by_all(folder.path(), MOST_BESIDES) {
        assert!(message.contains("is a folder; expected "), "{message}");
    }
    #[cfg(unix)]
    {
        let (pipe, link) = (folder.path().join("pipe.csv"), folder.path().join("link.json"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [pipe.as_path(), &link, Path::new("/dev/zero"), Path::new("/dev/stdin")] {
            if std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            for message in refused_by_all(path, MOST_BESIDES) {
                assert!(message.contains("is not a regular file; expected "), "{message}");
            }
        }
        std::os::unix::fs::symlink(folder.path().join("self"), folder.path().join("self")).unwrap();
        refused_by_all(&folder.path().join("self"), MOST_BESIDES);
    }
}

#[test]
fn nesting_does_not_exhaust_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep");
    let deep = 100_000;
    let dotted = [vec!["a"; deep].join("."), " = 1".into()].concat().into_bytes();
    let header = [b"[".as_slice(), vec!["a"; deep].join(".").as_bytes(), b"]"].concat();
    let quick = [b"[quick.".as_slice(), vec!["a"; deep].join(".").as_bytes(), b"]"].concat();
    let in_checkpoint =
        [br#"{"format": "coirl-checkpoint", "checkpoint": "#.as_slice(), &nested("[", "]", deep), b"}"].concat();
    let tensors = nested("{\"a\":", "}", deep);
    let in_tensors = [&(tensors.len() as u64).to_le_bytes()[..], &tensors].concat();
    for bytes in [
        nested("[", "]", deep),
        nested("{\"a\":", "}", deep),
        nested("a = [", "]", deep),
        nested("{a=", "}", deep),
        nested("a = {a=", "}", deep),
        dotted,
        header,
        quick,
        in_checkpoint,
        in_tensors,
        b"[".repeat(deep),
        b"[[a]]\n".repeat(deep),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        refused_by_all(&path, 1000 * bytes.len() + MOST_BESIDES);
    }
}

/// Dotted keys build tables in tables, which are dropped by a function that calls itself.
#[test]
fn a_setting_of_a_hundred_thousand_parts_overflowed_the_stack() {
    let text = String::from_utf8(files_of("experiments", "toml").remove(0)).unwrap();
    let key = vec!["a"; 100_000].join(".");
    let error = Experiment::read(&text, Scale::Usual, &[(key, toml::Value::Boolean(true))]).unwrap_err();
    assert!(matches!(error, Error::Spec { .. }) && error.to_string().len() < LONGEST_MESSAGE, "{error:.100}");
}

/// An archive of one array of zeros, deflated, beside sound ones.
fn with_bomb(name: &str, element: &str, shape: &str, n_bytes: usize, beside: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (other, content) in beside.iter().filter(|(other, _)| other != name) {
        zip.start_file(other, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.start_file(name, options.large_file(true)).unwrap();
    zip.write_all(&array(element, shape, &[])).unwrap();
    let zeros = vec![0; 1 << 20];
    let mut left = n_bytes;
    while left > 0 {
        let n = left.min(zeros.len());
        zip.write_all(&zeros[..n]).unwrap();
        left -= n;
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn bombs_are_refused_before_they_unpack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.npz");
    let beside = read_archive(&model_files("npz")[0]);
    // Forty million flags are 320 MiB as numbers.
    let (n, many) = (40_usize << 20, 40_usize << 20);
    for (name, shape) in [
        ("initial.npy", format!("({many},)")),
        ("features.npy", format!("(12, {})", many / 12)),
        ("transitions.npy", format!("(1, {many}, 1)")),
        ("admissible.npy", format!("(12, {})", many / 12)),
        ("x.npy", format!("({many}, 1)")),
    ] {
        let n = if shape.starts_with("(12") { n / 12 * 12 } else { n };
        std::fs::write(&path, with_bomb(name, "|b1", &shape, n, &beside)).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(unpacked_limit(size) < 8 * n as u64 && size < n as u64 / 500, "{size} bytes");
        for message in refused_by_all(&path, 64 << 20) {
            assert!(!message.is_empty());
        }
    }
    std::fs::write(&path, with_bomb("x.npy", "|b1", &format!("({many}, 1)"), n, &[])).unwrap();
    let (message, _) = attempt("a bomb alone", &path, &|path| read_numbers(path, "x").map(drop));
    assert!(message.unwrap().contains("save it uncompressed"));
}

/// Kernels are mostly zeros, which are not kept: they may shrink as far as deflate goes.
#[test]
fn a_kernel_of_zeros_may_be_packed_a_hundredfold() {
    let n = 1500_usize;
    let start = [vec![0; 8 * (n - 1)], 1.0_f64.to_le_bytes().to_vec()].concat();
    let mut entries = vec![
        ("initial.npy".to_owned(), array("<f8", &format!("({n},)"), &start)),
        ("features.npy".to_owned(), array("<f8", &format!("({n}, 1)"), &vec![0; 8 * n])),
        ("discount.npy".to_owned(), array("<f8", "()", &0.5_f64.to_le_bytes())),
    ];
    let mut transitions = vec![0_u8; 8 * n * n];
    for s in 0..n {
        transitions[8 * (s * n + s)..8 * (s * n + s) + 8].copy_from_slice(&1.0_f64.to_le_bytes());
    }
    entries.push(("transitions.npy".to_owned(), array("<f8", &format!("({n}, 1, {n})"), &transitions)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.npz");
    std::fs::write(&path, write_archive(&entries, CompressionMethod::Deflated)).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() * 100 < transitions.len() as u64);
    let (message, memory) = attempt("an identity", &path, &|path| read_model(path).map(drop));
    assert_eq!(message, None);
    assert!(memory < MOST_BESIDES, "{memory} bytes of memory for {} of zeros", transitions.len());
}

/// Counts that nothing in the file has to back: they must cost nothing.
#[test]
fn counts_without_bytes_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.npz");
    let sparse = read_archive(&model_files("npz")[1]);
    for (name, count) in [("n_features.npy", u64::from(u32::MAX)), ("horizon.npy", u64::from(u32::MAX))] {
        let mut entries = sparse.clone();
        entries.retain(|(other, _)| other != name);
        entries.push((name.into(), array("<u8", "()", &count.to_le_bytes())));
        std::fs::write(&path, write_archive(&entries, CompressionMethod::Stored)).unwrap();
        let (_, memory) = attempt(name, &path, &|path| read_model(path).map(drop));
        assert!(memory < MOST_BESIDES, "{name}: {memory} bytes of memory");
    }
    let mut entries = read_archive(&model_files("npz")[4]);
    entries.retain(|(name, _)| !name.starts_with("context_"));
    for dimension in [u64::from(u32::MAX), u64::MAX] {
        let json = format!("{{\"simplex\": {{\"dimension\": {dimension}}}}}");
        let data: Vec<u8> = json.chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
        let text = array(&format!("<U{}", json.len()), "()", &data);
        let with = [entries.clone(), vec![("context_space.npy".into(), text)]].concat();
        std::fs::write(&path, write_archive(&with, CompressionMethod::Stored)).unwrap();
        let (message, memory) = attempt("a simplex", &path, &|path| read_model(path).map(drop));
        assert!(memory < MOST_BESIDES, "{memory} bytes of memory");
        // Drawing one context from it would need all that memory.
        assert!(message.unwrap().contains("a simplex of dimension"));
    }
}

/// Files that were found or thought of, by format and what is wrong with them.
#[test]
fn the_corpus_is_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus");
    let mut tally = Tally::new("corpus of the library", "files");
    for format in std::fs::read_dir(&corpus).unwrap() {
        let format = format.unwrap().path();
        let is_archive = format.ends_with("npz");
        for file in std::fs::read_dir(&format).unwrap() {
            let path = file.unwrap().path();
            let size = std::fs::metadata(&path).unwrap().len() as usize;
            for (name, read) in readers() {
                let what = format!("{name} of {}", path.display());
                let (message, memory) = attempt(&what, &path, &read);
                // The arrays of a model that is none may be sound.
                assert!(message.is_some() || (is_archive && name.ends_with("numbers")), "{what}: accepted");
                assert!(memory <= MOST_PER_BYTE * size + MOST_BESIDES, "{what}: {memory} bytes of memory");
            }
            tally.tried(1);
        }
    }
}

/// What the mutations make is as various as they promise: of any file hardly two are the same.
#[test]
fn mutations_differ() {
    let tally = Tally::new("mutations", "files");
    let seeds = model_files("npz");
    let all: std::collections::BTreeSet<Vec<u8>> =
        (0..200).map(|i| raw(&mut tally.random(i), &seeds[0], &seeds[1])).collect();
    assert!(all.len() > 150, "{} of 200", all.len());
}
