//! Soft planning: the policy that maximises reward and temperature times causal entropy (Ziebart, Bagnell and Dey 2010).
//!
//! ```text
//! Q(s, a) = R(s, a) + γ Σ P(s' | s, a) V(s'),    V(s) = τ log Σ_a exp(Q(s, a)/τ),    π(a | s) = exp((Q(s, a) − V(s))/τ)
//! ```
//!
//! over the admissible actions. The soft backup T is monotone, shifts by γ·x where values shift by x, and is the largest of the
//! linear backups T_π with entropy as reward, attained by the soft policy of the values: the bounds of [`crate::plan::certificate`]
//! hold word for word, and Newton's method on V = TV,
//!
//! ```text
//! V ← V + (I − γP_π)⁻¹ (TV − V),    π the soft policy of V,
//! ```
//!
//! is policy iteration: monotone from its second step on, and fast near the end, whatever the discount. Its systems are solved to
//! a part in a thousand only while that helps, and it starts from hard values. Value iteration shrinks the error by γ only. Exponents are differences to the best action, so that no reward and no horizon overflows. As τ → 0 the
//! plan tends to the hard one. Cost of a Newton step: a backup with an exponential per pair, and one linear system.

use crate::error::{Error, Result, check_finite};
use crate::model::{Criterion, Mdp, Reward, StateId};
use crate::plan::certificate::{Certificate, Horizon, Status, backup_rounding};
use crate::plan::evaluate::policy_matrix;
use crate::plan::kernels::linear::{Scratch, policy_values, reduce_value_residual};
use crate::plan::kernels::sweep::Change;
use crate::plan::planner::{Limits, Method, start_value};
use crate::plan::policy::Policy;
use crate::plan::problem::Problem;
use crate::plan::solve::exact::pair_values;
use crate::plan::solve::iterate::{Progress, iterate, residual};
use crate::plan::solve::{absorption, finite_horizon};

/// Residuals below so many units of rounding are not worth another step.
const ROUNDING_UNITS: f64 = 32.0;

/// By how much a Newton step reduces the residual of its linear system, and in how many products at most: solving it better
/// than the next step can use is wasted.
const INEXACT: f64 = 1e-3;
const INEXACT_PRODUCTS: usize = 200;
/// Newton steps that may leave more than half of the residual before systems are solved exactly.
const MAX_STALLS: usize = 20;

/// How the soft values are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SoftMethod {
    /// Newton's method from hard values: a linear system per step, a handful of steps.
    #[default]
    PolicyIteration,
    /// Backups only: about log(1/tolerance)/(1 − γ) of them.
    ValueIteration,
}

/// Settings of soft planning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftPlanner {
    /// τ: what a unit of entropy is worth.
    pub temperature: f64,
    /// How.
    pub method: SoftMethod,
    /// Residual of the soft backup, in units of the temperature, below which planning stops.
    pub tolerance: f64,
    /// For how long.
    pub limits: Limits,
}

impl Default for SoftPlanner {
    fn default() -> Self {
        Self { temperature: 1.0, method: SoftMethod::default(), tolerance: 1e-11, limits: Limits::default() }
    }
}

/// A stochastic policy with its soft values and what is guaranteed about them.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct SoftPlan {
    /// The policy: stochastic, and in stages for a finite horizon.
    pub policy: Policy,
    /// V(s), entropy included; at the first decision of a finite horizon.
    pub values: Vec<f64>,
    /// ξ·V.
    pub value: f64,
    /// Status and bounds, of reward and entropy together.
    pub certificate: Certificate,
    /// log π of every pair, one list per stage or one for all times.
    log_probabilities: Vec<Vec<f64>>,
}

impl SoftPlan {
    /// log π(a | s) of every pair at decision `time` (from 0); nothing beyond a finite horizon.
    pub fn log_probabilities(&self, time: usize) -> Option<&[f64]> {
        let stage = if matches!(self.policy, Policy::StagedStochastic(_)) { time } else { 0 };
        self.log_probabilities.get(stage).map(Vec::as_slice)
    }
}

impl SoftPlanner {
    /// A planner of this temperature.
    pub fn at(temperature: f64) -> Self {
        Self { temperature, ..Self::default() }
    }

    /// Plans for the criteria whose values are sums.
    pub fn plan(&self, mdp: &Mdp<'_>, reward: &Reward) -> Result<SoftPlan> {
        self.check()?;
        let problem = Problem::new(mdp, reward)?;
        let plan = match mdp.criterion() {
            Criterion::Discounted { .. } | Criterion::TotalReward => self.plan_sum(mdp, &problem),
            Criterion::FiniteHorizon { steps, discount } => {
                self.plan_stages(mdp, &Problem { gamma: discount, ..problem }, steps)
            }
            Criterion::Average => Err(Error::CriterionMismatch {
                operation: "soft planning",
                criterion: mdp.criterion().name(),
                hint: "use a discount below 1, a finite horizon or total reward until absorption",
            }),
        }?;
        check_finite("values", &plan.values)?;
        check_finite("value", &[plan.value])?;
        plan.log_probabilities.iter().try_for_each(|stage| check_logarithms(stage))?;
        Ok(SoftPlan { certificate: plan.certificate.sound(), ..plan })
    }

    fn plan_sum(&self, mdp: &Mdp<'_>, problem: &Problem<'_>) -> Result<SoftPlan> {
        let gamma = problem.gamma;
        // Without a discount an absorbing state ends the episode: there is nothing left to choose, and no entropy in it.
        let ended: Vec<bool> =
            (0..mdp.n_states()).map(|s| gamma == 1.0 && mdp.is_absorbing(StateId(s as u32))).collect();
        let (mut values, mut sweeps) = match self.method {
            SoftMethod::ValueIteration => (vec![0.0; mdp.n_states()], 0),
            SoftMethod::PolicyIteration => {
                // Hard values are cheap, and near where rewards are large against the temperature.
                let first = problem.first_values();
                let hard = iterate(problem, Method::Automatic, first, self.temperature, self.limits);
                (hard.values, hard.sweeps)
            }
        };
        let mut scratch = Scratch::default();
        let (mut last, mut stalls) = (f64::INFINITY, 0);
        let mut progress = Progress::new(mdp.n_states());
        let (backup, converged) = loop {
            let backup = self.backup(problem, &values, &ended);
            sweeps += 1;
            let goal = (self.tolerance * self.temperature).max(ROUNDING_UNITS * backup_rounding(problem, &values));
            let now = residual(backup.change, gamma);
            let converged = now <= goal;
            if converged || sweeps >= self.limits.max_sweeps || progress.stalls(now, sweeps) || !now.is_finite() {
                break (backup, converged);
            }
            let mut step: Vec<f64> = backup.values.iter().zip(&values).map(|(new, old)| new - old).collect();
            if self.method == SoftMethod::PolicyIteration {
                let policy = probabilities(&backup.log_probabilities);
                let matrix = policy_matrix(mdp, &policy, |s, _| step[s], &[])?;
                // Only exact steps are known to be monotone; where the others get nowhere, they take over.
                stalls += usize::from(now > 0.5 * last);
                last = now;
                sweeps += if stalls > MAX_STALLS {
                    policy_values(&matrix, &mut step, &mut scratch).products
                } else {
                    reduce_value_residual(&matrix, &mut step, INEXACT, INEXACT_PRODUCTS, &mut scratch)
                };
            }
            values.iter_mut().zip(&step).for_each(|(value, change)| *value += change);
        };
        let horizon = match mdp.criterion() {
            Criterion::TotalReward => Horizon::Absorption(absorption::longest_expected_time(problem.kernel)?),
            _ => Horizon::Discount(gamma),
        };
        let (change, rounding) = (backup.change, backup_rounding(problem, &values));
        let mut values = backup.values;
        let value_error_bound = match horizon {
            Horizon::Discount(gamma) => {
                // V lies around one more backup; the middle of MacQueen's interval halves what is not known.
                let shift = gamma * change.mid() / (1.0 - gamma);
                values.iter_mut().for_each(|value| *value += shift);
                (0.5 * gamma * change.span() + rounding) / (1.0 - gamma)
            }
            Horizon::Absorption(_) => horizon.value_error(change, rounding),
        };
        Ok(SoftPlan {
            policy: probabilities(&backup.log_probabilities),
            value: start_value(mdp.initial(), &values),
            values,
            certificate: Certificate {
                status: if converged { Status::Converged } else { Status::SweepLimit },
                residual: residual(change, gamma),
                suboptimality_bound: horizon.suboptimality(change, change, 0.0, rounding),
                value_error_bound,
                sweeps,
            },
            log_probabilities: vec![backup.log_probabilities],
        })
    }

    /// Backward induction, exact up to rounding.
    fn plan_stages(&self, mdp: &Mdp<'_>, problem: &Problem<'_>, steps: usize) -> Result<SoftPlan> {
        finite_horizon::check_size("state-action pairs × horizon", mdp.pairs().len(), steps)?;
        let going_on = vec![false; mdp.n_states()];
        let mut values = vec![0.0; mdp.n_states()];
        let mut log_probabilities = Vec::with_capacity(steps);
        let mut rounding = 0.0;
        for _ in 0..steps {
            rounding = problem.gamma * rounding + backup_rounding(problem, &values);
            let backup = self.backup(problem, &values, &going_on);
            values = backup.values;
            log_probabilities.push(backup.log_probabilities);
        }
        log_probabilities.reverse();
        let stages = log_probabilities.iter().map(|stage| stage.iter().map(|log| log.exp()).collect());
        Ok(SoftPlan {
            policy: Policy::StagedStochastic(stages.collect()),
            value: start_value(mdp.initial(), &values),
            values,
            certificate: Certificate {
                status: Status::Exact,
                residual: 0.0,
                suboptimality_bound: 2.0 * rounding,
                value_error_bound: rounding,
                sweeps: steps,
            },
            log_probabilities,
        })
    }

    fn backup(&self, problem: &Problem<'_>, values: &[f64], ended: &[bool]) -> Backup {
        let mut q = pair_values(problem, values);
        let mut change = Change::NONE;
        let mut backed = Vec::with_capacity(values.len());
        for (s, &old) in values.iter().enumerate() {
            let own = &mut q[problem.pairs().of_state(s)];
            let soft = log_softmax(own, self.temperature);
            let value = if ended[s] { 0.0 } else { soft };
            change.add(value - old);
            backed.push(value);
        }
        Backup { values: backed, log_probabilities: q, change }
    }

    /// Refuses settings outside their range.
    fn check(&self) -> Result<()> {
        for (name, value) in [("temperature", self.temperature), ("tolerance", self.tolerance)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::InvalidSetting {
                    name,
                    value: value.to_string(),
                    reason: "expected a number above 0",
                });
            }
        }
        Ok(())
    }
}

/// One soft backup: TV, the soft policy of V, and by how much TV differs from V.
struct Backup {
    values: Vec<f64>,
    log_probabilities: Vec<f64>,
    change: Change,
}

/// Refuses what is no logarithm of a probability.
fn check_logarithms(logs: &[f64]) -> Result<()> {
    match logs.iter().position(|log| log.is_nan()) {
        Some(index) => Err(Error::NotFinite { what: "log-probability", index, value: logs[index] }),
        None => Ok(()),
    }
}

fn probabilities(log_probabilities: &[f64]) -> Policy {
    Policy::Stochastic(log_probabilities.iter().map(|log| log.exp()).collect())
}

/// Turns scores into the logarithms of their softmax at a temperature, and gives τ log Σ exp(score/τ).
pub fn log_softmax(scores: &mut [f64], temperature: f64) -> f64 {
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|score| *score = (*score - best) / temperature);
    let log_sum = scores.iter().map(|score| score.exp()).sum::<f64>().ln();
    scores.iter_mut().for_each(|score| *score -= log_sum);
    best + temperature * log_sum
}
