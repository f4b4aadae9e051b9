//! Whether probabilities are what they say: of the actions called 30 % likely, 30 % should have been taken.
//!
//! All (step, action) pairs are sorted into bins of predicted probability. With Σp the predictions and k the actions taken in a bin,
//!
//! ```text
//! error = Σ_bins |Σp − k| / steps,        noise = Σ_bins √(2/π · Σ p (1 − p)) / steps.
//! ```
//!
//! The error is per step, not per pair, so that it does not fade with the number of actions that are never taken. True probabilities have Σp − k = 0 in
//! expectation, but not its absolute value: `noise` is what they would show (normal approximation; steps of a patient are uncorrelated once
//! the probabilities are true), and `excess` is the error beyond it. Cost: steps × actions.

use super::{Record, StepPolicy};

/// Bins of equal width.
const BINS: usize = 10;

/// Actions that were called about equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct ReliabilityBin {
    /// Least probability in the bin.
    pub from: f64,
    /// Most; of the next bin where it is hit exactly, but for 1.
    pub to: f64,
    /// (step, action) pairs in it.
    pub count: usize,
    /// Their mean predicted probability; 0 in an empty bin.
    pub predicted: f64,
    /// Share of them that was taken; 0 in an empty bin.
    pub observed: f64,
}

/// How well probabilities foresee the recorded actions.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Calibration {
    /// Ten bins.
    pub bins: Vec<ReliabilityBin>,
    /// Expected calibration error per step, from 0 to 2.
    pub error: f64,
    /// The error that true probabilities would show.
    pub noise: f64,
    /// −ln b(recorded action), mean over steps.
    pub log_loss: f64,
    /// The same of predicting every step by the other folds' overall shares of actions.
    pub overall_log_loss: f64,
}

impl Calibration {
    /// `overall` are shares [step, action].
    pub(super) fn of(record: &Record, policy: &StepPolicy, overall: &[f64]) -> Self {
        let (mut sums, mut taken, mut variances, mut counts) = ([0.0; BINS], [0.0; BINS], [0.0; BINS], [0_usize; BINS]);
        let (mut log_loss, mut overall_log_loss) = (0.0, 0.0);
        let n = record.n_actions();
        for (step, &action) in record.actions().iter().enumerate() {
            let action = action as usize;
            for (a, &p) in policy.row(step).iter().enumerate() {
                let bin = ((p * BINS as f64) as usize).min(BINS - 1);
                sums[bin] += p;
                taken[bin] += f64::from(u8::from(a == action));
                // Rounding may leave a probability just above one.
                variances[bin] += (p * (1.0 - p)).max(0.0);
                counts[bin] += 1;
            }
            log_loss -= policy.row(step)[action].ln();
            overall_log_loss -= overall[step * n + action].ln();
        }
        let steps = record.n_steps() as f64;
        let mean = |sum: f64, count: usize| if count == 0 { 0.0 } else { sum / count as f64 };
        let bin = |i: usize| ReliabilityBin {
            from: i as f64 / BINS as f64,
            to: (i + 1) as f64 / BINS as f64,
            count: counts[i],
            predicted: mean(sums[i], counts[i]),
            observed: mean(taken[i], counts[i]),
        };
        Self {
            bins: (0..BINS).map(bin).collect(),
            error: (0..BINS).map(|i| (sums[i] - taken[i]).abs()).sum::<f64>() / steps,
            noise: variances.iter().map(|v| (v * std::f64::consts::FRAC_2_PI).sqrt()).sum::<f64>() / steps,
            log_loss: log_loss / steps,
            overall_log_loss: overall_log_loss / steps,
        }
    }

    /// The error beyond what chance explains; about zero for true probabilities, and below it as often as above.
    pub fn excess(&self) -> f64 {
        self.error - self.noise
    }
}
