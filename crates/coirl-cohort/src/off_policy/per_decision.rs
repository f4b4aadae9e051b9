//! Per-decision weighted importance sampling: V = Σ_t γᵗ Σᵢ ρᵢₜ rᵢₜ / Σᵢ ρᵢₜ (Precup, Sutton & Singh 2000). A reward is weighted by
//! the decisions before it only; where all reward comes at the end of stays of one length, it is WIS. Not a number where all ρ_t are zero.

use super::Record;
use super::ratios::Ratios;

/// The estimate where patient p counts `times[p]` times.
pub(super) fn value(record: &Record, ratios: &Ratios, times: &[f64]) -> f64 {
    let mut sums = vec![0.0; record.longest()];
    for episode in 0..record.n_episodes() {
        let weight = times[record.patient(episode)];
        for (t, step) in record.steps(episode).enumerate() {
            sums[t] += weight * ratios.at(step) * record.rewards()[step];
        }
    }
    let totals = ratios.totals(record, times);
    // Horner's rule: the latest term is discounted most.
    sums.iter().zip(&totals).rev().fold(0.0, |later, (sum, total)| sum / total + record.discount() * later)
}
