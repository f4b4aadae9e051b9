//! How hard an attack tries, and what it tells: a little in ordinary tests, more under `cargo xtask torture`.
//!
//! Three variables of the environment decide: `COIRL_EFFORT`, how many times the ordinary amount (1); `COIRL_ATTACK_SEED`, where its
//! random choices start (0); `COIRL_TALLIES`, a folder for what was tried.
#![allow(dead_code)] // each test file uses a part
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// So many times what an ordinary test tries.
pub(crate) fn effort(ordinary: u64) -> u64 {
    ordinary * variable("COIRL_EFFORT").unwrap_or(1)
}

/// Where random choices start.
pub(crate) fn seed() -> u64 {
    variable("COIRL_ATTACK_SEED").unwrap_or(0)
}

/// What an attack tried. Told when it ends, well or not.
pub(crate) struct Tally {
    attack: &'static str,
    unit: &'static str,
    tried: u64,
    /// The largest value seen of each.
    figures: BTreeMap<&'static str, f64>,
}

impl Tally {
    /// `unit` is what is counted, in the plural.
    pub(crate) fn new(attack: &'static str, unit: &'static str) -> Self {
        Self { attack, unit, tried: 0, figures: BTreeMap::new() }
    }

    /// The random choices of attempt `i`: the same whatever came before.
    pub(crate) fn random(&self, i: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        random.set_stream(i);
        random
    }

    pub(crate) fn tried(&mut self, n: u64) {
        self.tried += n;
    }

    /// Keeps the largest value of a figure.
    pub(crate) fn largest(&mut self, figure: &'static str, value: f64) {
        let kept = self.figures.entry(figure).or_insert(value);
        *kept = kept.max(value);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let Some(folder) = std::env::var_os("COIRL_TALLIES").map(PathBuf::from) else { return };
        let told = serde_json::json!({
            "attack": self.attack,
            "unit": self.unit,
            "tried": self.tried,
            "figures": self.figures,
            "broke": std::thread::panicking(),
            "seed": seed(),
        });
        // Another test may tell of the same attack from the same process.
        let name =
            format!("{}-{}-{}.json", self.attack.replace(' ', "-"), self.unit.replace(' ', "-"), std::process::id());
        std::fs::write(folder.join(name), told.to_string()).unwrap();
    }
}
