//! Weighted doubly robust estimation (Thomas & Brunskill 2016): the weights of every time are scaled to sum to one,
//!
//! ```text
//! V = Σᵢ Σ_t γᵗ [wᵢ,ₜ₋₁ V(sᵢₜ) + wᵢₜ (rᵢₜ − Q(sᵢₜ, aᵢₜ))],        wᵢₜ = ρᵢₜ / Σⱼ ρⱼₜ,  wᵢ,₋₁ = 1/n.
//! ```
//!
//! Biased, consistent if either Q or the behaviour policy is right, and steadier than with plain ratios. Not a number where all ρ_t are zero.

use super::Record;
use super::fitted_q::StepValues;
use super::ratios::Ratios;

/// The estimate where patient p counts `times[p]` times.
pub(super) fn value(record: &Record, ratios: &Ratios, values: &StepValues, times: &[f64]) -> f64 {
    let totals = ratios.totals(record, times);
    let episodes: f64 = (0..record.n_episodes()).map(|episode| times[record.patient(episode)]).sum();
    let mut sum = 0.0;
    for episode in 0..record.n_episodes() {
        let mut scale = times[record.patient(episode)];
        if scale == 0.0 {
            continue;
        }
        let mut before = 1.0 / episodes;
        for (step, total) in record.steps(episode).zip(&totals) {
            let weight = ratios.at(step) / total;
            sum +=
                scale * (before * values.of_state[step] + weight * (record.rewards()[step] - values.of_action[step]));
            before = weight;
            scale *= record.discount();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::enumerated::Enumerated;
    use super::*;

    /// With every stay in its due number the weights of each time sum to what they should.
    #[test]
    fn on_the_whole_population_a_wrong_q_does_no_harm() -> coirl::Result<()> {
        let all = Enumerated::new()?;
        let found = value(&all.record, &all.ratios, &all.wrong_values(), &vec![1.0; all.record.n_patients()]);
        assert!((found - Enumerated::truth()).abs() < 1e-12, "{found} instead of {}", Enumerated::truth());
        Ok(())
    }

    #[test]
    fn a_patient_drawn_twice_counts_as_two() -> coirl::Result<()> {
        let all = Enumerated::new()?;
        let n = all.record.n_patients();
        let found = |times: f64| value(&all.record, &all.ratios, &all.wrong_values(), &vec![times; n]);
        assert!((found(2.0) - found(1.0)).abs() < 1e-12);
        Ok(())
    }
}
