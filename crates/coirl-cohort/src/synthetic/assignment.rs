//! Which fitted state a simulator state is taken for: P(k | s), the probability that a row of simulator state s is assigned to fitted state k.
//!
//! Estimated from rows emitted anew, as many for each state: the standard error of a probability p is √(p(1 − p)/draws), and that of the policy
//! carried back smaller still where neighbouring fitted states act alike. The row of admission shows the patient's own coma scale and
//! ventilation, and is drawn for each patient apart.

use super::columns::Row;
use super::emission::{Bloc, Streams};
use super::test_patients::TestPatients;
use coirl::check::check_length;
use coirl::domains::Patient;
use coirl::domains::sepsis::N_CLUSTERS;
use coirl::model::StateId;
use coirl::{Error, Result};
use rayon::prelude::*;

/// Rows assigned at a time.
const BATCH: usize = 4096;

/// How many rows are drawn to see where a state is assigned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Draws {
    /// Rows for each simulator state, and for each patient's admission.
    pub per_state: usize,
    /// Seed of their noise; independent of that of the cohort.
    pub seed: u64,
}

impl Default for Draws {
    fn default() -> Self {
        Self { per_state: 64, seed: 0 }
    }
}

impl Draws {
    /// Refuses none.
    pub(super) fn check(&self) -> Result<()> {
        if self.per_state > 0 {
            return Ok(());
        }
        let reason = "expected at least 1 row for each state";
        Err(Error::InvalidSetting { name: "per_state", value: "0".into(), reason })
    }
}

/// Fitted states with their probabilities, ascending.
pub(super) type Shares = Vec<(usize, f64)>;

/// Where simulator states are assigned to, for a list of patients.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    later: Vec<Shares>,
    first: Vec<Shares>,
    n_fitted: usize,
}

impl Assignment {
    /// Every simulator state is recognised: fitted states are those of the simulator, 0 to 712.
    pub fn latent(patients: &[Patient]) -> Self {
        Self {
            later: (0..N_CLUSTERS).map(|s| vec![(s, 1.0)]).collect(),
            first: patients.iter().map(|patient| vec![(patient.start.index(), 1.0)]).collect(),
            n_fitted: N_CLUSTERS,
        }
    }

    /// Number of fitted states that a policy has to know: one more than the largest that was met.
    pub fn n_fitted(&self) -> usize {
        self.n_fitted
    }

    /// Number of patients.
    pub fn n_patients(&self) -> usize {
        self.first.len()
    }

    /// P(k | s), ascending in k, of the states 0 to 712.
    pub fn of_state(&self, state: StateId) -> &[(usize, f64)] {
        self.later.get(state.index()).map_or(&[], Vec::as_slice)
    }

    /// The same for the row of admission of a patient of the list.
    pub fn of_admission(&self, patient: usize) -> &[(usize, f64)] {
        self.first.get(patient).map_or(&[], Vec::as_slice)
    }
}

impl TestPatients<'_> {
    /// Draws rows and has them assigned, thousands at a time. Rows have fields and measurements; the fields are those of the patients in turn.
    /// Identifiers, outcomes and the doses that are about to be chosen are empty: a state that needs them is not known when acting.
    pub fn assignment(&self, draws: Draws, mut assign: impl FnMut(&[Row]) -> Result<Vec<usize>>) -> Result<Assignment> {
        draws.check()?;
        let (patients, emission) = (self.patients(), self.truth().emission());
        let later = |s: usize, draw: usize, streams: &mut Streams| {
            let patient = &patients[(s * draws.per_state + draw) % patients.len()];
            emission.row(patient, StateId(s as u32), Bloc::Later, streams)
        };
        let first = |i: usize, _: usize, streams: &mut Streams| {
            emission.row(&patients[i], patients[i].start, Bloc::First, streams)
        };
        let later = shares(N_CLUSTERS, draws, "assigned state", later, &mut assign)?;
        let first = shares(patients.len(), draws, "assigned admission", first, &mut assign)?;
        let most = later.iter().chain(&first).flatten().map(|share| share.0).max().unwrap_or(0);
        Ok(Assignment { later, first, n_fitted: most.saturating_add(1) })
    }
}

/// Shares of the fitted states among the rows of each of `n` sources.
pub(super) fn shares(
    n: usize,
    draws: Draws,
    purpose: &str,
    row: impl Fn(usize, usize, &mut Streams) -> Row + Sync,
    assign: &mut impl FnMut(&[Row]) -> Result<Vec<usize>>,
) -> Result<Vec<Shares>> {
    let per_batch = (BATCH / draws.per_state).max(1);
    let mut found = Vec::with_capacity(n);
    for sources in (0..n).collect::<Vec<_>>().chunks(per_batch) {
        let rows_of = |&source: &usize| {
            let mut streams = Streams::new(draws.seed, purpose, source as u64);
            (0..draws.per_state).map(|draw| row(source, draw, &mut streams)).collect::<Vec<_>>()
        };
        let rows: Vec<Row> = sources.par_iter().flat_map_iter(rows_of).collect();
        let mut assigned = assign(&rows)?;
        check_length("assigned rows", rows.len(), assigned.len())?;
        for of_source in assigned.chunks_exact_mut(draws.per_state) {
            of_source.sort_unstable();
            let same = of_source.chunk_by(|a, b| a == b);
            found.push(same.map(|run| (run[0], run.len() as f64 / draws.per_state as f64)).collect());
        }
    }
    Ok(found)
}
