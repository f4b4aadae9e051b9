//! Importance sampling: V = Σᵢ ρᵢ Gᵢ / n. Unbiased with the true behaviour policy; its variance grows exponentially with the length of a
//! stay, and it can lie far outside the range of returns.

use super::Record;
use super::ratios::Ratios;

/// The estimate where patient p counts `times[p]` times.
pub(super) fn value(record: &Record, ratios: &Ratios, times: &[f64]) -> f64 {
    let (mut sum, mut episodes) = (0.0, 0.0);
    for episode in 0..record.n_episodes() {
        let weight = times[record.patient(episode)];
        sum += weight * ratios.of_episode(record, episode) * record.discounted_return(episode);
        episodes += weight;
    }
    sum / episodes
}
