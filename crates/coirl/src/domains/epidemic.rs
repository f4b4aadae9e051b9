//! An infectious disease under measures that cost money and quality of life: a model that mixes slowly, with long rows.
//!
//! State s is the number of people who are healthy and can be infected; the other `people` − s are ill. In a step everybody who is ill
//! recovers, and of the healthy, k are infected, so that the next state is `people` − k: k is binomial with s trials and
//! probability 1 − exp(−(1 − s/people)·ψ·λ), kept to a window around its mean and divided by its sum. Twenty actions combine
//! five levels of hygiene, which set the contagion ψ of a meeting, with four of distance, which set the meetings λ. Nobody ill
//! is a state that nothing leaves. Features: what the measures cost, the quality of life they leave, and (number of ill)^1.1. The
//! model and the tables of ψ, λ, costs and quality of life, with meetings in proportion to the number of people, are those of the
//! infectious disease in chapter 5 of Gargiani et al. (2024, arXiv:2404.06136), as madupite's
//! examples have them.

use crate::error::{Error, Result, check_room};
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, ContextSpace, Criterion, Names};

/// By level of hygiene: contagion of a meeting, cost, quality of life.
const HYGIENE: [(f64, f64, f64); 5] =
    [(0.25, 0.0, 1.0), (0.125, 1.0, 0.7), (0.08, 5.0, 0.5), (0.05, 6.0, 0.4), (0.03, 9.0, 0.05)];
/// By level of distance: share of all people that one meets, cost, quality of life.
const DISTANCE: [(f64, f64, f64); 4] = [(0.2, 0.0, 1.0), (0.16, 1.0, 0.9), (0.1, 10.0, 0.5), (0.01, 30.0, 0.1)];
const N_ACTIONS: usize = HYGIENE.len() * DISTANCE.len();

/// Settings of the epidemic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epidemic {
    /// Number of people.
    pub people: usize,
    /// Numbers of infections that a step can have, around their mean.
    pub window: usize,
    /// γ.
    pub discount: f64,
}

impl Default for Epidemic {
    fn default() -> Self {
        Self { people: 1000, window: 100, discount: 0.99 }
    }
}

impl Epidemic {
    /// The context whose reward under [`standard_mapping`](Self::standard_mapping) is
    /// −0.5·cost + 0.2·quality of life − 0.3·(number of ill)^1.1.
    pub const STANDARD_CONTEXT: [f64; 3] = [0.5, 0.2, 0.3];

    /// Every priority is the weight of its feature: costs and illness count against, quality of life for.
    pub fn standard_mapping() -> LinearMapping {
        LinearMapping::from_checked(3, vec![-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0])
    }

    /// The model, started with any number of healthy people with equal probability.
    pub fn build(self) -> Result<Cmdp> {
        let n = self.people;
        let positive = |name, value: usize| match value {
            0 => Err(Error::InvalidSetting { name, value: "0".into(), reason: "expected at least 1" }),
            _ => Ok(()),
        };
        positive("people", n)?;
        positive("window", self.window)?;
        check_room("transitions of an epidemic", &[n.saturating_add(1), N_ACTIONS, self.window.min(n)])?;
        let levels = |action: usize| (HYGIENE[action % HYGIENE.len()], DISTANCE[action / HYGIENE.len()]);
        let transition = |healthy: usize, action: usize| {
            if healthy == n {
                return vec![(n, 1.0)];
            }
            let ((contagion, ..), (meetings, ..)) = levels(action);
            let rate = (1.0 - healthy as f64 / n as f64) * contagion * (meetings * n as f64);
            let mean = healthy as f64 * -(-rate).exp_m1();
            let half = (self.window / 2) as f64;
            let first = (mean - half).max(0.0) as usize;
            let last = ((mean + half - 1.0).clamp(0.0, healthy as f64) as usize).max(first);
            // q/(1 − q) = exp(rate) − 1, without the rounding of q.
            let shares = binomial(healthy, rate.exp_m1(), first, last);
            shares.into_iter().enumerate().map(|(i, p)| (n - first - i, p)).collect()
        };
        let features = |healthy: usize, action: usize| {
            let ((_, hygiene_cost, hygiene_life), (_, distance_cost, distance_life)) = levels(action);
            [hygiene_cost + distance_cost, hygiene_life * distance_life, ((n - healthy) as f64).powf(1.1)]
        };
        let criterion = Criterion::discounted(self.discount)?;
        let strings = |names: [&str; 3]| names.map(String::from).to_vec();
        let action = |a: usize| format!("hygiene {}, distance {}", a % HYGIENE.len(), a / HYGIENE.len());
        Cmdp::from_fn(n + 1, N_ACTIONS, transition, features, criterion)?
            .with_context_space(ContextSpace::Simplex { dimension: 3 })?
            .with_names(Names {
                model: format!("epidemic among {n} people"),
                actions: (0..N_ACTIONS).map(action).collect(),
                features: strings(["cost of measures", "quality of life", "ill^1.1"]),
                contexts: strings(["economy", "quality of life", "health"]),
            })
    }
}

/// Probabilities of `first` to `last` successes, given that there are that many: by the ratio of neighbours outwards from the largest
/// one, so that nothing overflows, and what vanishes is what does not count. The odds q/(1 − q) may be infinite.
fn binomial(trials: usize, odds: f64, first: usize, last: usize) -> Vec<f64> {
    let chance = if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 };
    let mode = (((trials + 1) as f64 * chance) as usize).clamp(first, last);
    let mut shares = vec![0.0; last + 1 - first];
    shares[mode - first] = 1.0;
    for k in mode..last {
        shares[k + 1 - first] = shares[k - first] * odds * ((trials - k) as f64 / (k + 1) as f64);
    }
    for k in (first + 1..=mode).rev() {
        shares[k - 1 - first] = shares[k - first] / odds * (k as f64 / (trials + 1 - k) as f64);
    }
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odds(q: f64) -> f64 {
        q / (1.0 - q)
    }

    #[test]
    fn binomial_probabilities_are_those_of_the_textbook() {
        let found = binomial(4, odds(0.25), 0, 4);
        for (found, expected) in found.iter().zip([81.0, 108.0, 54.0, 12.0, 1.0].map(|x| x / 256.0)) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        // Two of three outcomes: a half and a quarter of the whole become two thirds and one.
        assert!((binomial(2, 1.0, 1, 2)[0] - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn many_trials_keep_the_moments_and_the_tails() {
        for (n, q) in [(5000, 0.3), (5000, 1e-5), (20_000, 0.999), (20_000, 0.5)] {
            let shares = binomial(n, odds(q), 0, n);
            let moment = |f: &dyn Fn(f64) -> f64| shares.iter().enumerate().map(|(k, p)| f(k as f64) * p).sum::<f64>();
            let mean = n as f64 * q;
            assert!((moment(&|k| k) - mean).abs() < 1e-9 * mean, "{n} {q}");
            let variance = mean * (1.0 - q);
            assert!((moment(&|k| (k - mean).powi(2)) - variance).abs() < 1e-8 * variance, "{n} {q}");
            // (1 − q)^n and q^n, where doubles hold them.
            let close = |found: f64, log: f64| log < -700.0 || (found.ln() - log).abs() < 1e-9 * log.abs().max(1.0);
            assert!(close(shares[0], n as f64 * (-q).ln_1p()), "{n} {q}");
            assert!(close(shares[n], n as f64 * q.ln()), "{n} {q}");
        }
    }

    #[test]
    fn certain_infection_infects_everybody() {
        assert_eq!(binomial(10, f64::INFINITY, 6, 10), [0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(binomial(0, 3.0, 0, 0), [1.0]);
    }
}
