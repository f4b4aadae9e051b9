//! Weighted importance sampling (WIS): V = Σᵢ ρᵢ Gᵢ / Σᵢ ρᵢ. A mean of recorded returns: biased (towards the behaviour's value where
//! few weights dominate), consistent, and of much less variance than plain importance sampling. Not a number where all ρ are zero.

use super::Record;
use super::ratios::Ratios;

/// The estimate where patient p counts `times[p]` times.
pub(super) fn value(record: &Record, ratios: &Ratios, times: &[f64]) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for episode in 0..record.n_episodes() {
        let weight = times[record.patient(episode)] * ratios.of_episode(record, episode);
        sum += weight * record.discounted_return(episode);
        total += weight;
    }
    sum / total
}
