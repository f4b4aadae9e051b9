//! Transition kernels: the published one with inadmissible actions leading to *unknown* or masked, and kernels that depend on the context.
//!
//! The contextual kernels tilt the published one: Pᵢ(s'|s,a) ∝ P(s'|s,a)·exp(tᵢ(s')), where tᵢ is 0.15 standard deviations' worth of
//! what context field i measures in s', with a shift of the odds of death against survival. Tilts are centred so that the mean context
//! has the published kernel, to first order. P_c = Σ cᵢ Pᵢ.

use super::Inadmissible;
use super::data::{DEATH, Data, N_ACTIONS, N_CLUSTERS, N_STATES, SURVIVAL, UNKNOWN};
use super::reward::standardise;
use crate::error::Result;
use crate::model::{Kernel, KernelBuilder, Pairs};
use std::sync::Arc;

/// Standard deviations' worth of tilt.
const STRENGTH: f64 = 0.15;
/// What each context field measures in a cluster, and by how much it shifts the log-odds of death against survival.
const TILTS: [(&str, f64); 7] = [
    ("gender", 0.0),
    ("age", 0.25),
    ("BUN", 0.20),
    ("re_admission", 0.10),
    ("Weight_kg", -0.05),
    ("GCS", -0.30),
    ("mechvent", 0.30),
];

/// The admissible pairs of the simulator.
pub(super) fn pairs(data: &Data, inadmissible: Inadmissible) -> Result<Arc<Pairs>> {
    let mask: Vec<bool> = match inadmissible {
        Inadmissible::Unknown => return Ok(Arc::new(Pairs::all(N_STATES, N_ACTIONS)?)),
        Inadmissible::Masked => {
            let ends = (N_CLUSTERS * N_ACTIONS..N_STATES * N_ACTIONS).map(|pair| pair % N_ACTIONS == 0);
            data.admissible.iter().copied().chain(ends).collect()
        }
    };
    Ok(Arc::new(Pairs::from_mask(N_STATES, N_ACTIONS, &mask)?))
}

/// The pairs whose consequences were seen, where every action may be taken; at the end all do the same.
pub(super) fn known(data: &Data) -> Vec<bool> {
    let ends = std::iter::repeat_n(true, (N_STATES - N_CLUSTERS) * N_ACTIONS);
    data.admissible.iter().copied().chain(ends).collect()
}

/// The kernel with the probability of every successor multiplied by its weight, rows scaled to one.
pub(super) fn kernel(data: &Data, pairs: &Arc<Pairs>, weight: impl Fn(usize) -> f64) -> Result<Kernel> {
    let mut builder = KernelBuilder::new(pairs.clone());
    let mut rows = data.rows();
    for s in 0..N_STATES {
        for pair in pairs.of_state(s) {
            let action = pairs.action(pair).index();
            if s >= N_CLUSTERS {
                builder.push_row([(s as i64, 1.0)].into_iter())?;
            } else if !data.admissible[s * N_ACTIONS + action] {
                builder.push_row([(UNKNOWN as i64, 1.0)].into_iter())?;
            } else if let Some(row) = rows.next() {
                let total: f64 = row.clone().map(|(next, p)| p * weight(next)).sum();
                builder.push_row(row.map(|(next, p)| (next as i64, p * weight(next) / total)))?;
            }
        }
    }
    builder.finish()
}

/// The kernel as published.
pub(super) fn published(data: &Data, pairs: &Arc<Pairs>) -> Result<Kernel> {
    kernel(data, pairs, |_| 1.0)
}

/// Base kernels, one per context field; `mean` is the mean context.
pub(super) fn tilted(data: &Data, pairs: &Arc<Pairs>, mean: &[f64]) -> Result<Vec<Kernel>> {
    let mut tilts: Vec<Vec<f64>> = Vec::new();
    for (column, odds) in TILTS {
        let mut tilt = data.column(column)?;
        standardise(&mut tilt);
        tilt.iter_mut().for_each(|x| *x *= STRENGTH);
        tilt.resize(N_STATES, 0.0);
        tilt[DEATH] = 0.5 * odds;
        tilt[SURVIVAL] = -0.5 * odds;
        tilts.push(tilt);
    }
    for s in 0..N_STATES {
        let centre: f64 = tilts.iter().zip(mean).map(|(tilt, c)| c * tilt[s]).sum();
        tilts.iter_mut().for_each(|tilt| tilt[s] -= centre);
    }
    tilts.iter().map(|tilt| kernel(data, pairs, |next| tilt[next].exp())).collect()
}
