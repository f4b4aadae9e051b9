//! Patients for three purposes. A patient with several stays is in one part only.

use super::spec::SplitSpec;
use super::stays::Stay;
use coirl::random::stream;
use coirl::{Error, Result};
use rand::seq::SliceRandom;

/// Stays by what they are for.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) train: Vec<Stay>,
    pub(super) validation: Vec<Stay>,
    pub(super) test: Vec<Stay>,
}

impl Parts {
    /// All stays.
    pub(super) fn all(&self) -> impl Iterator<Item = &Stay> {
        self.train.iter().chain(&self.validation).chain(&self.test)
    }
}

/// Cuts shuffled patients by share; stays keep their order within a part. Whoever is left by rounding is for training.
pub(super) fn split(stays: Vec<Stay>, shares: SplitSpec, seed: u64) -> Result<Parts> {
    let mut patients: Vec<u32> = stays.iter().map(|stay| stay.patient).collect();
    patients.sort_unstable();
    patients.dedup();
    patients.shuffle(&mut stream(seed, "split by patient", 0));
    let count = |share: f64| (share * patients.len() as f64).round() as usize;
    let (n_validation, n_test) = (count(shares.validation), count(shares.test));
    let empty =
        [(shares.validation, n_validation), (shares.test, n_test)].iter().any(|&(share, n)| share > 0.0 && n == 0);
    if empty || n_validation + n_test >= patients.len() {
        let SplitSpec { train, validation, test } = shares;
        let reason = format!(
            "patients: {}, too few for shares of {train}, {validation} and {test}, for one part would be empty; give more patients, or say \
             other shares under [split] (validation = 0 or test = 0 do without that part)",
            patients.len()
        );
        return Err(Error::Spec { place: "split".into(), reason });
    }
    let largest = patients.iter().copied().max().unwrap_or_default() as usize;
    let mut part = vec![0_u8; largest + 1];
    patients[..n_validation].iter().for_each(|&patient| part[patient as usize] = 1);
    patients[n_validation..n_validation + n_test].iter().for_each(|&patient| part[patient as usize] = 2);
    let mut parts = Parts { train: Vec::new(), validation: Vec::new(), test: Vec::new() };
    for stay in stays {
        match part[stay.patient as usize] {
            1 => parts.validation.push(stay),
            2 => parts.test.push(stay),
            _ => parts.train.push(stay),
        }
    }
    Ok(parts)
}

/// Places of at most `most` among `n`, drawn without repetition, ascending.
pub fn draw(n: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    places.shuffle(&mut stream(seed, "stays drawn", 0));
    places.truncate(most);
    places.sort_unstable();
    places
}
