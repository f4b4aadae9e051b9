//! What was learned, on disk: bit for bit, refused when damaged, never a panic.
#![allow(missing_docs, clippy::unwrap_used)]

use coirl::agent::{
    Agent, Choice, ClonedNetwork, ClonedPolicy, Inputs, KnownContexts, Mixture, NearestActions, NearestWeights,
    SoftMapping,
};
use coirl::artifact::{
    is_fitted, read_checkpoint, read_fitted, read_model, write_checkpoint, write_fitted, write_model,
};
use coirl::demos::{Demonstration, Estimator, Expert, SimulatedExpert, Train};
use coirl::domains::Garnet;
use coirl::learn::{Problem, Record, Recorder, Snapshot, Watch};
use coirl::mapping::{LinearMapping, NeuralMapping, RewardMapping};
use coirl::methods::{Checkpoint, Fitted, Settings, fit, resume};
use coirl::model::{ActionId, Cmdp, ContextSpace};
use coirl::network::{Architecture, Layer, Network, Standardisation};
use coirl::score::Examination;
use std::ops::ControlFlow;
use std::path::Path;

/// Keeps the checkpoint after some steps, and stops there where asked to.
struct Keeper {
    after: u64,
    stop: bool,
    kept: Option<Checkpoint>,
}

impl Recorder for Keeper {
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        if record.step != self.after {
            return Ok(ControlFlow::Continue(()));
        }
        self.kept = Some(snapshot.checkpoint()?);
        Ok(if self.stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

fn model() -> Cmdp {
    let model = Garnet { n_states: 12, n_features: 3, seed: 5, ..Garnet::default() }.build().unwrap();
    model.with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap()
}

fn run(model: &Cmdp, keeper: &mut Keeper, from: Option<Checkpoint>) -> Fitted {
    let truth = LinearMapping::new(2, 3, vec![0.3, -0.2, 0.1, 0.7, 0.5, -0.4]).unwrap();
    let expert = SimulatedExpert::new(model, truth.clone(), 0.0, 1).unwrap();
    let contexts = model.context_space().sample(8, 3).unwrap();
    let shown = contexts.iter().enumerate().map(|(i, context)| {
        let mdp = model.mdp(context).unwrap();
        // Nobody is as bad as this, so the expert always shows how it is done.
        let answer = expert.answer(i as u64, context, &mdp, &[-1e9, 1e9, 0.0]).unwrap();
        let coirl::demos::Answer::Demonstration(mu) = answer else { return None };
        Demonstration::from_feature_expectations(model, context.clone(), mu).ok()
    });
    let train = Train::new(shown.flatten().collect());
    let problem = Problem::new(model, &train, &Estimator::default()).unwrap();
    let examination = Examination::new(model, &truth, contexts).unwrap();
    let watch = Watch { examination: Some(&examination), validation: None };
    match from {
        None => fit(&problem, &Settings { record_every: Some(2), ..Settings::default() }, watch, keeper).unwrap(),
        Some(checkpoint) => resume(&problem, checkpoint, watch, keeper).unwrap(),
    }
}

fn fitted() -> (Fitted, Checkpoint) {
    let mut keeper = Keeper { after: 3, stop: false, kept: None };
    let fitted = run(&model(), &mut keeper, None);
    (fitted, keeper.kept.unwrap())
}

#[test]
fn what_is_written_is_read_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
    let (mut fitted, _) = fitted();
    assert!(fitted.history.len() > 2 && fitted.history.iter().all(|record| record.score.is_some()));
    // Infinite bounds are honest answers and must survive.
    fitted.certificate.bias_bound = f64::INFINITY;
    fitted.history[1].gap = Some(f64::INFINITY);
    write_fitted(&first, &fitted).unwrap();
    let read = read_fitted(&first).unwrap();
    assert_eq!(read, fitted);
    let bits = |fitted: &Fitted| fitted.mapping().unwrap().values().iter().map(|w| w.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&read), bits(&fitted));
    write_fitted(&second, &read).unwrap();
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    assert!(is_fitted(&first) && !is_fitted(folder.path()));
}

/// Results of the version before this one are read, but for the sentences that statuses took the place of; its checkpoints are refused.
#[test]
fn files_of_the_version_before() {
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/earlier");
    let fitted = read_fitted(&earlier.join("fitted.safetensors")).unwrap();
    assert_eq!((fitted.agent.kind(), fitted.steps, fitted.planner_calls), ("mixed", 60, 1440));
    assert_eq!((fitted.settings.method.name(), fitted.settings.record_every), ("mwal", Some(5)));
    let game = fitted.certificate.game_value.as_ref().unwrap();
    assert!(game.lower < game.upper && game.rewards.is_none() && fitted.certificate.bound.is_some());
    assert_eq!(fitted.certificate.guarantee.reason, "not_recorded");
    let folder = tempfile::tempdir().unwrap();
    write_fitted(&folder.path().join("again.safetensors"), &fitted).unwrap();
    assert_eq!(read_fitted(&folder.path().join("again.safetensors")).unwrap(), fitted);
    let refused = read_checkpoint(&earlier.join("checkpoint.json")).unwrap_err().to_string();
    assert!(refused.contains("version 1") && refused.contains("reads version 2"), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
}

#[test]
fn a_checkpoint_on_disk_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.json");
    let (whole, _) = fitted();
    let mut keeper = Keeper { after: 3, stop: true, kept: None };
    let _ = run(&model(), &mut keeper, None);
    write_checkpoint(&path, keeper.kept.as_ref().unwrap()).unwrap();
    let read = read_checkpoint(&path).unwrap();
    assert_eq!(Some(&read), keeper.kept.as_ref());
    let resumed = run(&model(), &mut Keeper { after: 0, stop: false, kept: None }, Some(read));
    let (first, second) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
    write_fitted(&first, &whole).unwrap();
    write_fitted(&second, &resumed).unwrap();
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
}

#[test]
fn damaged_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (fitted, checkpoint) = fitted();
    let path = folder.path().join("damaged.safetensors");
    write_fitted(&path, &fitted).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for n in 0..whole.len() {
        std::fs::write(&path, &whole[..n]).unwrap();
        let error = read_fitted(&path).unwrap_err().to_string();
        assert!(error.contains("damaged.safetensors"), "{n}: {error}");
    }
    for i in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[i] ^= [0x01, 0x80, 0xff][i % 3];
        std::fs::write(&path, &bytes).unwrap();
        // Whatever comes out is finite, whole and of the shape it says.
        if let Ok(read) = read_fitted(&path) {
            assert_eq!(
                read.mapping().unwrap().values().len(),
                read.mapping().unwrap().dimension() * read.mapping().unwrap().n_features()
            );
            assert!(read.mapping().unwrap().values().iter().all(|w| w.is_finite()));
        }
    }
    let path = folder.path().join("checkpoint.json");
    write_checkpoint(&path, &checkpoint).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for n in 0..whole.len() - 1 {
        std::fs::write(&path, &whole[..n]).unwrap();
        let error = read_checkpoint(&path).unwrap_err().to_string();
        assert!(error.contains("checkpoint.json"), "{n}: {error}");
    }
}

#[test]
fn every_kind_of_agent_is_read_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.safetensors");
    let (mut fitted, _) = fitted();
    for agent in agents(fitted.mapping().unwrap().clone()) {
        let kind = agent.kind();
        fitted.agent = agent;
        write_fitted(&path, &fitted).unwrap();
        assert_eq!(read_fitted(&path).unwrap(), fitted);
        match (&fitted.agent, fitted.mapping()) {
            (Agent::Planned(_) | Agent::Soft(_), Ok(_)) => {}
            (Agent::Neural(_), Err(error)) => assert!(error.to_string().contains("a network, not a matrix"), "{error}"),
            (_, Err(error)) => assert!(error.to_string().contains(kind), "{error}"),
            (_, Ok(_)) => panic!("{kind} has no mapping"),
        }
    }
}

/// One of each kind.
fn agents(mapping: LinearMapping) -> Vec<Agent> {
    let twice = LinearMapping::new(2, 3, mapping.values().iter().map(|w| 2.0 * w).collect()).unwrap();
    let known = || KnownContexts::new(2, vec![0.25, 0.75, 0.5, 0.5]).unwrap();
    let weights = vec![1.0, -2.0, 0.5, 1e-300, -0.0, 3.0];
    let cloned = |interactions: bool| {
        let inputs = Inputs { dimension: 2, n_state_inputs: 3, interactions };
        let context = Standardisation { shift: vec![0.5, 0.25], scale: vec![1.0, 2.0] };
        let numbers = |n: usize| (0..n).map(|i| 1.0 / (i as f64 + 3.0)).collect::<Vec<_>>();
        let choice = Choice { masked: !interactions, most_probable: interactions };
        Agent::Cloned(ClonedPolicy::new(inputs, context, numbers(36), numbers(4 * inputs.len()), choice).unwrap())
    };
    vec![
        Agent::Planned(mapping.clone()),
        Agent::Mixed(Mixture::new(vec![0.25, 0.75], vec![mapping.clone(), twice]).unwrap()),
        Agent::Soft(SoftMapping::new(mapping, 0.3).unwrap()),
        Agent::Nearest(NearestWeights::new(known(), weights.clone(), None).unwrap()),
        Agent::Nearest(NearestWeights::new(known(), weights, Some(0.1)).unwrap()),
        cloned(true),
        cloned(false),
        Agent::ClonedNetwork(cloned_network()),
        Agent::Copied(NearestActions::new(known(), (0..24).map(|i| ActionId(i % 4)).collect()).unwrap()),
        Agent::Fixed((0..12).map(|i| ActionId(i % 3)).collect()),
        Agent::Uniform,
        Agent::Neural(network(7)),
    ]
}

/// A network with a normalised layer, for contexts of two numbers and twelve states that three describe.
fn cloned_network() -> ClonedNetwork {
    let hidden = vec![Layer::normalised(4), Layer::linear(3)];
    let architecture = Architecture { inputs: 5, hidden, outputs: 4, unit_output: false };
    let standard = Standardisation { shift: vec![0.5, 0.25, 0.0, 0.0, 0.0], scale: vec![1.0, 2.0, 1.0, 1.0, 1.0] };
    let parameters = (0..architecture.n_parameters()).map(|i| 1.0 / (i as f32 - 7.5)).collect();
    let network = Network::new(architecture, standard, parameters, vec![0.75; 8]).unwrap();
    let states = (0..36).map(|i| 1.0 / (f64::from(i) + 3.0)).collect();
    ClonedNetwork::new(2, network, states, Choice { masked: true, most_probable: false }).unwrap()
}

/// A small network of every kind of layer, with numbers that single precision rounds.
fn network(seed: usize) -> NeuralMapping {
    let hidden = vec![Layer::normalised(5), Layer::leaky(4), Layer::linear(3)];
    let architecture = Architecture { inputs: 2, hidden, outputs: 3, unit_output: seed.is_multiple_of(2) };
    let standard = Standardisation { shift: vec![0.1, 1.0 / 3.0], scale: vec![0.3, 1e-3] };
    let parameters = (0..architecture.n_parameters()).map(|i| ((i + seed) as f32).sin() / 3.0).collect();
    let statistics = (0..10).map(|i| 1.0 / (i as f32 + 3.0)).collect();
    NeuralMapping::new(Network::new(architecture, standard, parameters, statistics).unwrap())
}

#[test]
fn a_network_predicts_the_same_bits_after_loading() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
    let (mut fitted, _) = fitted();
    let contexts = model().context_space().sample(70, 4).unwrap();
    for seed in [7, 8] {
        let mapping = network(seed);
        fitted.agent = Agent::Neural(mapping.clone());
        write_fitted(&first, &fitted).unwrap();
        let read = read_fitted(&first).unwrap();
        let Agent::Neural(loaded) = &read.agent else { panic!("a network") };
        let (before, after) = (mapping.network(), loaded.network());
        assert_eq!(before.architecture(), after.architecture());
        let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for (a, b) in [
            (&before.standardisation().shift, &after.standardisation().shift),
            (&before.standardisation().scale, &after.standardisation().scale),
        ] {
            assert_eq!(bits(a), bits(b));
        }
        for (a, b) in [(before.parameters(), after.parameters()), (before.statistics(), after.statistics())] {
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(a), bits(b));
        }
        let weights = |mapping: &NeuralMapping| bits(&mapping.weights_of_all(&contexts).unwrap());
        assert_eq!(weights(&mapping), weights(loaded));
        write_fitted(&second, &read).unwrap();
        assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    }
}

/// A file with what its preamble says changed, and its tensors as they were.
fn with_preamble(bytes: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut preamble: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(&mut preamble);
    let preamble = preamble.to_string();
    [&(preamble.len() as u64).to_le_bytes()[..], preamble.as_bytes(), &bytes[8 + length..]].concat()
}

/// The same for the header inside the preamble.
fn with_header(bytes: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    with_preamble(bytes, |preamble| {
        let header = &mut preamble["__metadata__"]["header"];
        let mut inner: serde_json::Value = serde_json::from_str(header.as_str().unwrap()).unwrap();
        change(&mut inner);
        *header = inner.to_string().into();
    })
}

/// Shapes that the tensors do not have, and that no machine could hold, are refused by what the header says alone.
#[test]
fn networks_of_another_shape_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.safetensors");
    let (mut fitted, _) = fitted();
    fitted.names = coirl::model::Names::default();
    fitted.agent = Agent::Neural(network(7));
    write_fitted(&path, &fitted).unwrap();
    let whole = std::fs::read(&path).unwrap();
    assert!(read_fitted(&path).is_ok());
    let refused = |bytes: Vec<u8>| {
        std::fs::write(&path, bytes).unwrap();
        let error = read_fitted(&path).unwrap_err().to_string();
        assert!(error.contains("hostile.safetensors"), "{error}");
        error
    };
    let widths = ["/agent/architecture/inputs", "/agent/architecture/outputs", "/agent/architecture/hidden/1/width"];
    for width in widths {
        let set = |n: u64| with_header(&whole, |header| *header.pointer_mut(width).unwrap() = n.into());
        assert!(refused(set(0)).contains("at least 1 unit each"), "{width}");
        for enormous in [1 << 40, u64::MAX / 2, u64::MAX] {
            assert!(refused(set(enormous)).contains("more than the 1073741824 that can be held"), "{width}");
        }
        // Numbers that could be held, and are not there.
        assert!(refused(set(6)).contains("expected"), "{width}");
        assert!(refused(set(4_000_000)).contains("expected"), "{width}");
    }
    let layer = |n: usize| {
        with_header(&whole, |header| {
            let hidden = header.pointer_mut("/agent/architecture/hidden").unwrap().as_array_mut().unwrap();
            let last = hidden[2].clone();
            hidden.resize(n, last);
        })
    };
    assert!(refused(layer(2)).contains("expected") && refused(layer(3000)).contains("expected"));
    // Statistics without batch normalisation, and the other way round.
    for (at, normalised) in [("0", false), ("2", true)] {
        let flag = format!("/agent/architecture/hidden/{at}/batch_normalisation");
        refused(with_header(&whole, |header| *header.pointer_mut(&flag).unwrap() = normalised.into()));
    }
    // The tensors themselves: longer than the file, or of negative variance, or not finite.
    let end = 1_u64 << 50;
    refused(with_preamble(&whole, |preamble| {
        preamble["parameters"]["shape"] = serde_json::json!([end / 4]);
        preamble["parameters"]["data_offsets"][1] = end.into();
    }));
    let length = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let preamble: serde_json::Value = serde_json::from_slice(&whole[8..8 + length]).unwrap();
    let at =
        |tensor: &str, i: usize| 8 + length + preamble[tensor]["data_offsets"][0].as_u64().unwrap() as usize + 4 * i;
    for (place, value) in
        [(at("statistics", 7), -1.0_f32), (at("statistics", 0), f32::NAN), (at("parameters", 3), f32::INFINITY)]
    {
        let mut bytes = whole.clone();
        bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
        refused(bytes);
    }
}

/// Files from before there were known actions and accuracies by choice are read as what they were.
#[test]
fn what_older_files_do_not_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("older.safetensors");
    let (mut fitted, _) = fitted();
    let score = fitted.history.last().unwrap().score.unwrap();
    assert!(score.choice_accuracy.is_finite() && score.visited_accuracy.is_finite());
    fitted.agent = agents(fitted.mapping().unwrap().clone()).swap_remove(6);
    write_fitted(&path, &fitted).unwrap();
    let older = with_header(&std::fs::read(&path).unwrap(), |header| {
        assert_eq!(header["agent"].as_object_mut().unwrap().remove("masked"), Some(true.into()));
        for record in header["history"].as_array_mut().unwrap() {
            let record = record.as_object_mut().unwrap();
            assert!(record.remove("choice_accuracy").is_some() && record.remove("visited_accuracy").is_some());
        }
    });
    std::fs::write(&path, older).unwrap();
    let read = read_fitted(&path).unwrap();
    let Agent::Cloned(cloned) = &read.agent else { panic!("a cloned policy") };
    assert!(!cloned.choice().masked);
    let read = read.history.last().unwrap().score.unwrap();
    assert_eq!((read.value, read.accuracy), (score.value, score.accuracy));
    assert!(read.choice_accuracy.is_nan() && read.visited_accuracy.is_nan());
}

/// Whatever is cut off or changed in a file, reading it ends in an error that names it, or in an agent that is whole.
#[test]
fn damaged_agents_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.safetensors");
    let (mut fitted, _) = fitted();
    fitted.history.truncate(1);
    let contexts = model().context_space().sample(2, 1).unwrap();
    for agent in agents(fitted.mapping().unwrap().clone()) {
        let kind = agent.kind();
        fitted.agent = agent;
        write_fitted(&path, &fitted).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for i in (0..whole.len()).step_by(11) {
            std::fs::write(&path, &whole[..i]).unwrap();
            let error = read_fitted(&path).unwrap_err().to_string();
            assert!(error.contains("damaged.safetensors"), "{kind} {i}: {error}");
            let mut bytes = whole.clone();
            bytes[i] ^= [0x01, 0x80, 0xff][i % 3];
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(read) = read_fitted(&path) {
                // Acting may be refused, where an action is not the model's; it may not panic.
                let _ = coirl::agent::act(&model(), &read.agent, &contexts);
            }
        }
    }
}

#[test]
fn other_versions_and_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let (fitted, checkpoint) = fitted();
    let path = folder.path().join("later.safetensors");
    write_fitted(&path, &fitted).unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
    assert!(text.contains("\"version\":\"2\""));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(13).position(|window| window == b"\"version\":\"2\"").unwrap();
    bytes[at + 11] = b'9';
    std::fs::write(&path, bytes).unwrap();
    let error = read_fitted(&path).unwrap_err().to_string();
    assert!(error.contains("version \"9\"") && error.contains("version \"2\""), "{error}");

    let model_file = folder.path().join("model.safetensors");
    write_model(&model_file, &model()).unwrap();
    let error = read_fitted(&model_file).unwrap_err().to_string();
    assert!(error.contains("coirl-model") && error.contains("coirl-fitted"), "{error}");
    write_fitted(&path, &fitted).unwrap();
    let error = read_model(&path).unwrap_err().to_string();
    assert!(error.contains("coirl-model") && error.contains("coirl-fitted"), "{error}");

    let path = folder.path().join("checkpoint.json");
    write_checkpoint(&path, &Checkpoint { version: 7, ..checkpoint }).unwrap();
    let error = read_checkpoint(&path).unwrap_err().to_string();
    assert!(error.contains("checkpoint.json") && error.contains("version 7"), "{error}");
    for foreign in ["{}", "[1, 2]", "{\"format\": \"other\", \"checkpoint\": {}}", "hello"] {
        std::fs::write(&path, foreign).unwrap();
        assert!(read_checkpoint(&path).unwrap_err().to_string().contains("checkpoint.json"), "{foreign}");
    }
}
