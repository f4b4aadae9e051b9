//! Patients for three purposes. A patient with several stays is in one part only.
//!
//! Who is in which part follows from ids, outcomes and the seed alone, never from the order of the table: patients who ended badly in any
//! stay, and all others, are each ranked by SHA-256 of seed and id, and the ranks are cut by the shares. So every part has its exact
//! share of the patients and, but for rounding, the same share of bad ends. Another patient in the table moves at most one patient across
//! each of the two cuts of either group. (A threshold on the hash would move nobody, but leave the sizes of the parts and their bad ends to
//! chance: of 100 patients 20 ± 4 would be to test on.) More rows of the same patients move nobody whose outcome stays.

use super::spec::{OutcomeSpec, SplitSpec};
use super::stays::Stay;
use super::table::Table;
use coirl::model::digest::sha256;
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

/// A patient as far as the split is concerned. The order of the fields is the order in which patients are cut.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    ended_well: bool,
    hash: String,
    patient: u32,
}

/// Cuts patients, ranked by their hash within those who ended alike, by share; stays keep their order within a part. Whoever is left by
/// rounding is for training.
pub(super) fn split(
    stays: Vec<Stay>,
    table: &Table,
    outcome: Option<&OutcomeSpec>,
    shares: SplitSpec,
    seed: u64,
) -> Result<Parts> {
    let patients = ranked(&stays, table, outcome, seed)?;
    let count = |share: f64, n: usize| (share * n as f64).round() as usize;
    let (n_validation, n_test) = (count(shares.validation, patients.len()), count(shares.test, patients.len()));
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
    let largest = patients.iter().map(|own| own.patient).max().unwrap_or_default() as usize;
    let mut part = vec![0_u8; largest + 1];
    // Counted over both groups, so that rounding does not add up.
    let (mut seen, mut validated, mut tested) = (0, 0, 0);
    for alike in patients.chunk_by(|a, b| a.ended_well == b.ended_well) {
        seen += alike.len();
        let n_validation = count(shares.validation, seen).saturating_sub(validated).min(alike.len());
        let n_test = count(shares.test, seen).saturating_sub(tested).min(alike.len() - n_validation);
        (validated, tested) = (validated + n_validation, tested + n_test);
        alike[..n_validation].iter().for_each(|own| part[own.patient as usize] = 1);
        // From the other end: the cut of one part does not move the other.
        alike[alike.len() - n_test..].iter().for_each(|own| part[own.patient as usize] = 2);
    }
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

/// Every patient once: those with a bad end first, by hash.
fn ranked(stays: &[Stay], table: &Table, outcome: Option<&OutcomeSpec>, seed: u64) -> Result<Vec<Ranked>> {
    let ends = match outcome {
        Some(outcome) => Some((table.column(&outcome.column)?, outcome.bad)),
        None => None,
    };
    let badly = |stay: &Stay| match (ends, stay.rows.last()) {
        (Some((column, bad)), Some(&last)) => f64::from(column[last as usize]) == bad,
        _ => false,
    };
    let mut all: Vec<(u32, bool)> = stays.iter().map(|stay| (stay.patient, !badly(stay))).collect();
    // The bad end of a patient comes first and stays.
    all.sort_unstable();
    all.dedup_by_key(|own| own.0);
    let rank = |(patient, ended_well): (u32, bool)| {
        let name = match &table.patients {
            Some(patients) => patients.name(patient),
            None => table.stays.name(patient),
        };
        let hash = sha256(|sink| {
            sink(b"split by patient");
            sink(&seed.to_le_bytes());
            sink(name.as_bytes());
        });
        Ranked { ended_well, hash, patient }
    };
    let mut ranked: Vec<Ranked> = all.into_iter().map(rank).collect();
    ranked.sort_unstable();
    Ok(ranked)
}

/// Places of at most `most` among `n`, drawn without repetition, ascending.
pub fn draw(n: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    places.shuffle(&mut stream(seed, "stays drawn", 0));
    places.truncate(most);
    places.sort_unstable();
    places
}
