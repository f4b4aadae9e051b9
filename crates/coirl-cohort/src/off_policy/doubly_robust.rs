//! Doubly robust estimation (Jiang & Li 2016), with Q and V(s) = Σ_a π(a) Q(s, a) from a fit that never saw the patient:
//!
//! ```text
//! V = 1/n Σᵢ Σ_t γᵗ [ρᵢ,ₜ₋₁ V(sᵢₜ) + ρᵢₜ (rᵢₜ − Q(sᵢₜ, aᵢₜ))],        ρᵢ,₋₁ = 1.
//! ```
//!
//! Unbiased with the true behaviour policy whatever Q is, and of small variance where Q is good.

use super::Record;
use super::fitted_q::StepValues;
use super::ratios::Ratios;

/// The estimate where patient p counts `times[p]` times.
pub(super) fn value(record: &Record, ratios: &Ratios, values: &StepValues, times: &[f64]) -> f64 {
    let (mut sum, mut episodes) = (0.0, 0.0);
    for episode in 0..record.n_episodes() {
        let weight = times[record.patient(episode)];
        let (mut scale, mut before) = (weight, 1.0);
        for step in record.steps(episode) {
            let surprise = record.rewards()[step] - values.of_action[step];
            sum += scale * (before * values.of_state[step] + ratios.at(step) * surprise);
            before = ratios.at(step);
            scale *= record.discount();
        }
        episodes += weight;
    }
    sum / episodes
}

#[cfg(test)]
mod tests {
    use super::super::enumerated::Enumerated;
    use super::*;

    #[test]
    fn a_wrong_q_leaves_the_expectation_alone() -> coirl::Result<()> {
        let all = Enumerated::new()?;
        let times = vec![1.0; all.record.n_patients()];
        let found = value(&all.record, &all.ratios, &all.wrong_values(), &times);
        assert!((found - Enumerated::truth()).abs() < 1e-12, "{found} instead of {}", Enumerated::truth());
        // By Q alone it would be far off.
        assert!((all.wrong_values().at_start(&all.record, &times) - Enumerated::truth()).abs() > 0.5);
        Ok(())
    }
}
