//! What a policy would have reached, by every estimator that may say so, and why the others may not.
//!
//! Importance weights mislead long before they fail: with few effective stays their mean is that of a handful of patients, and its bootstrap
//! interval knows nothing of the stays that are missing. Every estimator that rests on them is therefore refused below an effective
//! sample size, where the mean weight is far from its expectation of 1, or where the behaviour policy they divide by is not calibrated; every estimator that uses Q, where its sweeps did not settle. All are refused
//! where too much of the policy was never tried: weights leave such actions out, Q makes them up. Where states were fitted to the table, Q is
//! refused together with the weights that could contradict it. Intervals resample patients, fit Q again for each resample (starting from the values of the whole
//! record) and keep the behaviour policy as it is; they show spread, not bias. Cost: fits of Q for every fold and resample.

use super::behaviour::Behaviour;
use super::fitted_q::{FittedQ, FittedQSettings, StepValues, Sweeps};
use super::ratios::Ratios;
use super::{
    Record, StepPolicy, doubly_robust, importance_sampling, per_decision, support, weighted, weighted_doubly_robust,
};
use coirl::resampling::Interval;
use coirl::resampling::{Estimate, Resampling};
use coirl::{Error, Result};

/// Settings of an assessment.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AssessmentSettings {
    /// Effective stays below which estimators with importance weights are refused.
    pub least_effective_sample_size: f64,
    /// Distance of the mean weight from 1 above which they are refused: it is 1 in expectation, and with 100 effective stays off by 0.1 from chance
    /// (one standard deviation). Far below 1 the policy's likely stays are missing from the record, whatever the effective sample size.
    pub most_weight_bias: f64,
    /// Calibration error of the behaviour policy, beyond chance, above which they are refused as well.
    pub most_calibration_error: f64,
    /// Share of the policy on actions never recorded in their state above which everything is refused.
    pub most_unseen: f64,
    /// The same above which there is a warning.
    pub warn_unseen: f64,
    /// Largest importance weight; none for no cap. A cap trades variance for a bias towards what was done.
    pub weight_cap: Option<f64>,
    /// Whether fitted Q evaluation may be given where every estimator that could contradict it is refused. It needs no weights, but states that
    /// are Markov; where they were fitted to a table, nothing in that table shows when they are not.
    pub fitted_q_alone: bool,
    /// Fitted Q evaluation.
    pub fitted_q: FittedQSettings,
    /// How patients are resampled. Its seed also deals the folds.
    pub resampling: Resampling,
}

impl Default for AssessmentSettings {
    fn default() -> Self {
        Self {
            least_effective_sample_size: 100.0,
            most_weight_bias: 0.25,
            most_calibration_error: 0.05,
            most_unseen: 0.1,
            warn_unseen: 0.01,
            weight_cap: None,
            fitted_q_alone: true,
            fitted_q: FittedQSettings::default(),
            resampling: Resampling { resamples: 200, ..Resampling::default() },
        }
    }
}

impl AssessmentSettings {
    fn check(&self, record: &Record) -> Result<()> {
        self.resampling.check()?;
        self.fitted_q.check(record)?;
        if let Some(cap) = self.weight_cap {
            coirl::check::check_positive("weight_cap", cap)?;
        }
        for (name, limit) in [
            ("least_effective_sample_size", self.least_effective_sample_size),
            ("most_weight_bias", self.most_weight_bias),
            ("most_calibration_error", self.most_calibration_error),
            ("most_unseen", self.most_unseen),
            ("warn_unseen", self.warn_unseen),
        ] {
            if !(limit >= 0.0) {
                let reason = "expected a number that is not negative";
                return Err(Error::InvalidSetting { name, value: limit.to_string(), reason });
            }
        }
        Ok(())
    }
}

/// A number, or why there is none.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Outcome {
    /// A number.
    Estimated {
        /// Value of the policy.
        value: f64,
        /// Over resampled patients.
        interval: Option<Interval>,
    },
    /// No number.
    Refused {
        /// Why, and what could be done.
        reason: String,
    },
}

impl Outcome {
    /// The number, where there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Outcome::Estimated { value, .. } => Some(*value),
            Outcome::Refused { .. } => None,
        }
    }

    /// Its interval, where there is one.
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Outcome::Estimated { interval, .. } => *interval,
            Outcome::Refused { .. } => None,
        }
    }
}

/// What a policy would have reached.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Assessment {
    /// Ordinary importance sampling.
    pub importance_sampling: Outcome,
    /// Weighted importance sampling (WIS).
    pub weighted: Outcome,
    /// Per-decision weighted importance sampling.
    pub per_decision: Outcome,
    /// Fitted Q evaluation (FQE).
    pub fitted_q: Outcome,
    /// Doubly robust (DR).
    pub doubly_robust: Outcome,
    /// Weighted doubly robust (WDR).
    pub weighted_doubly_robust: Outcome,
    /// (Σρ)²/Σρ² over episodes.
    pub effective_sample_size: f64,
    /// Σρ/n; 1 in expectation with the true behaviour policy and no cap.
    pub mean_weight: f64,
    /// Episodes in which a weight was capped.
    pub capped_episodes: usize,
    /// Mean probability of doing what was never recorded in the state.
    pub unseen: f64,
    /// How fitted Q evaluation ended.
    pub sweeps: Sweeps,
    /// What to keep in mind about the numbers.
    pub warnings: Vec<String>,
}

/// What was reached: the mean return of the record, with its interval.
pub fn recorded_outcome(record: &Record, resampling: &Resampling) -> Result<Estimate> {
    resampling.check()?;
    let returns: Vec<f64> = (0..record.n_episodes()).map(|episode| record.discounted_return(episode)).collect();
    let [estimate] = resampling.estimates(record.n_patients(), |times| {
        let (mut sum, mut episodes) = (0.0, 0.0);
        for (episode, own) in returns.iter().enumerate() {
            let weight = times[record.patient(episode)];
            sum += weight * own;
            episodes += weight;
        }
        [sum / episodes]
    });
    Ok(estimate)
}

/// Scores a policy by its probabilities at the steps of the record. For comparison the same function is called with other policies:
/// [`StepPolicy::uniform`], [`StepPolicy::uniform_over_seen`], [`StepPolicy::always`], the behaviour itself.
pub fn assess(
    record: &Record,
    behaviour: &Behaviour,
    policy: &StepPolicy,
    settings: &AssessmentSettings,
) -> Result<Assessment> {
    settings.check(record)?;
    policy.check(record)?;
    behaviour.policy().check(record)?;
    let ratios = Ratios::new(record, behaviour.policy(), policy, settings.weight_cap)?;
    let fitted_q = FittedQ::new(record, policy, &settings.fitted_q, settings.resampling.seed);
    let fit = fitted_q.fit(&vec![1.0; record.n_patients()], None);
    let values = fitted_q.step_values(&fit);
    let of_values = |values: &StepValues, times: &[f64]| {
        [
            importance_sampling::value(record, &ratios, times),
            weighted::value(record, &ratios, times),
            per_decision::value(record, &ratios, times),
            values.at_start(record, times),
            doubly_robust::value(record, &ratios, values, times),
            weighted_doubly_robust::value(record, &ratios, values, times),
        ]
    };
    let estimates = settings.resampling.estimates(record.n_patients(), |times| {
        if settings.fitted_q.refit {
            of_values(&fitted_q.step_values(&fitted_q.fit(times, Some(&fit))), times)
        } else {
            of_values(&values, times)
        }
    });
    let effective_sample_size = ratios.effective_sample_size(record);
    let mean_weight = ratios.mean(record);
    let unseen = support::unseen_share(record, policy);
    let support = doubts_of_support(unseen, settings);
    let of_weights: Vec<String> = [
        doubts_of_sample_size(effective_sample_size, settings),
        doubts_of_mean_weight(mean_weight, settings),
        doubts_of_behaviour(behaviour, settings),
        support.clone(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let alone = (!settings.fitted_q_alone).then(|| doubts_of_standing_alone(&of_weights)).flatten();
    let of_fit: Vec<String> = [support.or(alone), doubts_of_sweeps(&fit.sweeps)].into_iter().flatten().collect();
    let of_both: Vec<String> = of_weights.iter().cloned().chain(doubts_of_sweeps(&fit.sweeps)).collect();
    let [plain, weighted, per_decision, q, doubly_robust, weighted_doubly_robust] = estimates;
    Ok(Assessment {
        importance_sampling: outcome(plain, &of_weights),
        weighted: outcome(weighted, &of_weights),
        per_decision: outcome(per_decision, &of_weights),
        fitted_q: outcome(q, &of_fit),
        doubly_robust: outcome(doubly_robust, &of_both),
        weighted_doubly_robust: outcome(weighted_doubly_robust, &of_both),
        effective_sample_size,
        mean_weight,
        capped_episodes: ratios.capped,
        unseen,
        sweeps: fit.sweeps,
        warnings: warnings(record, behaviour, &ratios, unseen, settings),
    })
}

fn outcome(estimate: Estimate, doubts: &[String]) -> Outcome {
    if !doubts.is_empty() {
        Outcome::Refused { reason: doubts.join("; ") }
    } else if !estimate.value.is_finite() {
        let reason = "no recorded stay could have come from this policy: soften it towards what was done";
        Outcome::Refused { reason: reason.into() }
    } else {
        Outcome::Estimated { value: estimate.value, interval: estimate.interval }
    }
}

fn doubts_of_sample_size(effective: f64, settings: &AssessmentSettings) -> Option<String> {
    let least = settings.least_effective_sample_size;
    (effective < least).then(|| {
        format!(
            "the weights leave {effective:.1} effective stays, fewer than {least}: soften the policy towards what was done, or \
             record more stays"
        )
    })
}

fn doubts_of_mean_weight(mean: f64, settings: &AssessmentSettings) -> Option<String> {
    let most = settings.most_weight_bias;
    (!((mean - 1.0).abs() <= most)).then(|| {
        let shown = if (1e-3..1e5).contains(&mean) { format!("{mean:.3}") } else { format!("{mean:.1e}") };
        format!(
            "the mean weight is {shown}, further from 1 than {most}: stays that the policy makes likely are missing from the record or \
             the behaviour policy is wrong; soften the policy towards what was done, or shorten the stays"
        )
    })
}

fn doubts_of_behaviour(behaviour: &Behaviour, settings: &AssessmentSettings) -> Option<String> {
    let (excess, most) = (behaviour.calibration().excess(), settings.most_calibration_error);
    (excess > most).then(|| {
        format!(
            "the behaviour policy's calibration error is {excess:.3} beyond chance, more than {most}: estimate it by finer states \
             or other covariates"
        )
    })
}

fn doubts_of_support(unseen: f64, settings: &AssessmentSettings) -> Option<String> {
    let most = settings.most_unseen;
    (unseen > most).then(|| {
        format!(
            "{:.1} % of the policy is on actions never recorded in their state, more than {} %: keep it to recorded actions, or use \
             coarser states",
            100.0 * unseen,
            100.0 * most
        )
    })
}

fn doubts_of_standing_alone(of_weights: &[String]) -> Option<String> {
    (!of_weights.is_empty()).then(|| {
        format!(
            "nothing can contradict fitted Q evaluation here, which is confident and wrong where fitted states merge conditions: {}",
            of_weights.join("; ")
        )
    })
}

fn doubts_of_sweeps(sweeps: &Sweeps) -> Option<String> {
    (!sweeps.converged).then(|| {
        format!(
            "fitted Q evaluation still moved by {:.1e} after {} sweeps: allow more, or use a discount below 1",
            sweeps.residual, sweeps.iterations
        )
    })
}

fn warnings(
    record: &Record,
    behaviour: &Behaviour,
    ratios: &Ratios,
    unseen: f64,
    settings: &AssessmentSettings,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if unseen > settings.warn_unseen {
        warnings.push(format!(
            "{:.1} % of the policy is on actions never recorded in their state: fitted Q evaluation takes them to be as good as \
             what was done there",
            100.0 * unseen
        ));
    }
    let calibration = behaviour.calibration();
    if calibration.log_loss > calibration.overall_log_loss {
        warnings.push(format!(
            "the behaviour policy foresees actions no better (log-loss {:.4}) than their overall shares do ({:.4})",
            calibration.log_loss, calibration.overall_log_loss
        ));
    }
    if ratios.capped > 0 {
        warnings.push(format!(
            "weights were capped in {} of {} episodes, which draws every weighted estimate towards what was done",
            ratios.capped,
            record.n_episodes()
        ));
    }
    warnings
}
