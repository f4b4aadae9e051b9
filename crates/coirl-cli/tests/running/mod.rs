//! Running the program in a folder of its own.
#![allow(dead_code)]

pub(crate) mod content;
pub(crate) mod page;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use coirl::agent::Agent;
use coirl::artifact::{read_fitted, write_fitted};
use coirl::learn::{Hidden, Neural};
use coirl::mapping::NeuralMapping;
use coirl::methods::Method;
use coirl::network::{Architecture, Layer, Network, Standardisation};
use serde_json::Value;
use std::path::PathBuf;

/// A folder that goes away with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Runs the program with arguments separated by spaces.
    pub(crate) fn coirl(&self, arguments: &str) -> Assert {
        let mut command = Command::cargo_bin("coirl").unwrap();
        command.current_dir(self.0.path()).env("COLUMNS", "80").env_remove("CLICOLOR_FORCE");
        command.args(arguments.split_whitespace()).assert()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of what the folder holds, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Standard output as JSON.
pub(crate) fn json(run: Assert) -> Value {
    serde_json::from_slice(&run.get_output().stdout).unwrap()
}

/// Standard output as text.
pub(crate) fn text(run: Assert) -> String {
    String::from_utf8(run.get_output().stdout.clone()).unwrap()
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Contexts on the simplex of three numbers, spread by a fixed rule.
pub(crate) fn contexts(n: usize) -> Vec<[f64; 3]> {
    let at = |i: usize| {
        let (a, b) = ((i * 37 % 101) as f64 + 1.0, (i * 53 % 97) as f64 + 1.0);
        [a / (a + b + 50.0), b / (a + b + 50.0), 50.0 / (a + b + 50.0)]
    };
    (0..n).map(at).collect()
}

/// The paper's mapping.
pub(crate) const MAPPING: &str = "-1,0.75,0.75\n0.5,-1,1\n0.75,1,-0.75\n";

/// Writes the files `contexts.csv` and `mapping.csv`.
pub(crate) fn write_contexts(folder: &Folder, n: usize) {
    let rows = contexts(n).iter().map(|c| format!("{:?},{:?},{:?}\n", c[0], c[1], c[2])).collect::<String>();
    folder.write("contexts.csv", format!("speed,collision,off-road\n{rows}"));
    folder.write("mapping.csv", MAPPING);
}

/// Gives what was learned in a folder to a small untrained network, as a learner of networks would have left it.
pub(crate) fn as_network(folder: &Folder, run: &str, seed: usize) -> NeuralMapping {
    let path = folder.path(run).join("fitted.safetensors");
    let mut fitted = read_fitted(&path).unwrap();
    let (d, k) = (fitted.mapping().unwrap().dimension(), fitted.mapping().unwrap().n_features());
    let hidden = vec![Layer::normalised(6), Layer::leaky(4)];
    let architecture = Architecture { inputs: d, hidden: hidden.clone(), outputs: k, unit_output: true };
    let standard = Standardisation { shift: vec![1.0 / d as f64; d], scale: vec![0.25; d] };
    let parameters = (0..architecture.n_parameters()).map(|i| ((i * i + seed) as f32).sin()).collect();
    let statistics = (0..12).map(|i| if i < 6 { 0.0 } else { 1.0 }).collect();
    let mapping = NeuralMapping::new(Network::new(architecture, standard, parameters, statistics).unwrap());
    fitted.settings.method = Method::Neural(Neural {
        objective: coirl::objective::ObjectiveChoice::Loss,
        hidden: Hidden::Layers(hidden),
        ..Neural::default()
    });
    fitted.settings.stop.max_steps = Some(10);
    fitted.agent = Agent::Neural(mapping.clone());
    write_fitted(&path, &fitted).unwrap();
    mapping
}
