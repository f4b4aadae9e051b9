//! The planner: settings in, plan out.

use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{Criterion, Mdp, Reward};
use crate::plan::certificate::{Certificate, Horizon, Status, backup_rounding};
use crate::plan::kernels::buffers::Buffers;
use crate::plan::kernels::linear::sup_norm;
use crate::plan::kernels::share::SHARED;
use crate::plan::policy::{Policy, pairs_of};
use crate::plan::problem::{Problem, RowReward};
use crate::plan::solve::automatic::automatic;
use crate::plan::solve::exact::finish_exactly;
use crate::plan::solve::iterate::{Iterated, iterate};
use crate::plan::solve::{absorption, average, finite_horizon};
use crate::plan::{Simd, Way, evaluate};

/// How to plan. All methods give the same policy when planning exactly; they differ in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Chooses between sweeps and Krylov steps by what it measures on the way.
    #[default]
    Automatic,
    /// Backups only.
    ValueIteration,
    /// Backups with a fixed number of policy sweeps between them.
    ModifiedPolicyIteration {
        /// Policy sweeps between two backups.
        sweeps: usize,
    },
    /// Backups with an exact evaluation between them.
    PolicyIteration,
}

/// When a plan is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accuracy {
    /// The returned policy is greedy for its own exactly evaluated values. Among actions whose Q-values differ by no more
    /// than 1e-9 of the largest |Q|, the lowest index is taken, so that every method returns the same policy.
    #[default]
    Exact,
    /// The Bellman residual is at most this.
    Tolerance(f64),
}

/// Caps of the loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Sweeps after which planning stops with [`Status::SweepLimit`].
    pub max_sweeps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_sweeps: 1_000_000 }
    }
}

/// Settings of planning; the default plans exactly and chooses its method itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Planner {
    /// How.
    pub method: Method,
    /// How well.
    pub accuracy: Accuracy,
    /// For how long.
    pub limits: Limits,
    /// Which instructions the block planner may use; the results do not depend on it.
    pub simd: Simd,
}

/// Where planning starts.
#[derive(Debug, Clone, Copy, Default)]
pub enum Start<'a> {
    /// From the rewards.
    #[default]
    Cold,
    /// From the values of a similar problem.
    Values(&'a [f64]),
    /// From the values that this policy has for the reward at hand.
    Policy(&'a Policy),
}

/// A policy with its values and what is guaranteed about them.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Plan {
    /// The policy.
    pub policy: Policy,
    /// V(s); for the average-reward criterion the bias h(s), zero in the reference state.
    pub values: Vec<f64>,
    /// ξ·V; for the average-reward criterion the gain.
    pub value: f64,
    /// Status and bounds.
    pub certificate: Certificate,
    /// Which way planning went.
    pub way: Way,
}

impl Planner {
    /// An exact planner of this method.
    pub fn exact(method: Method) -> Self {
        Self { method, ..Self::default() }
    }

    /// A planner that stops at this Bellman residual.
    pub fn to_tolerance(method: Method, tolerance: f64) -> Self {
        Self { method, accuracy: Accuracy::Tolerance(tolerance), ..Self::default() }
    }

    /// Plans from scratch.
    pub fn plan(&self, mdp: &Mdp<'_>, reward: &Reward) -> Result<Plan> {
        self.plan_from(mdp, reward, Start::Cold)
    }

    /// Plans from a hint. A good hint saves sweeps; a bad one costs some and changes nothing else.
    pub fn plan_from(&self, mdp: &Mdp<'_>, reward: &Reward, start: Start<'_>) -> Result<Plan> {
        if mdp.kernel().n_entries() >= SHARED && rayon::current_num_threads() > 1 {
            // Passes are shared between threads; entering their pool once is cheaper than with every pass.
            return rayon::scope(|_| self.plan_here(mdp, reward, start));
        }
        self.plan_here(mdp, reward, start)
    }

    fn plan_here(&self, mdp: &Mdp<'_>, reward: &Reward, start: Start<'_>) -> Result<Plan> {
        self.check()?;
        reward.check_shape(mdp.pairs())?;
        reward.check()?;
        let plan = match mdp.criterion() {
            Criterion::FiniteHorizon { steps, discount } => finite_horizon::plan(mdp, reward, steps, discount),
            Criterion::Average => average::plan(self, mdp, reward, start),
            Criterion::Discounted { .. } | Criterion::TotalReward => {
                let problem = Problem::new(mdp, reward)?;
                let values = start_values(mdp, reward, &problem, start)?;
                let horizon = match mdp.criterion() {
                    Criterion::TotalReward => Horizon::Absorption(absorption::longest_expected_time(problem.kernel)?),
                    _ => Horizon::Discount(problem.gamma),
                };
                let tolerance = match self.accuracy {
                    Accuracy::Exact => EXACT_START * problem.reward.max_abs(),
                    Accuracy::Tolerance(tolerance) => change_within(tolerance, problem.gamma),
                };
                let reached = match self.method {
                    Method::Automatic => {
                        let mut buffers = Buffers::lent(problem.kernel.n_entries());
                        automatic(&problem, values, tolerance, self.limits, &mut buffers)
                    }
                    method => iterate(&problem, method, values, tolerance, self.limits),
                };
                self.certified(mdp, &problem, horizon, reached)
            }
        }?;
        check_finite("values", &plan.values)?;
        check_finite("value", &[plan.value])?;
        Ok(Plan { certificate: plan.certificate.sound(), ..plan })
    }

    /// The plan that an iteration came to, with what is guaranteed about it.
    fn certified(&self, mdp: &Mdp<'_>, problem: &Problem<'_>, horizon: Horizon, reached: Iterated) -> Result<Plan> {
        let near = reached.converged || reached.stalled || self.method == Method::PolicyIteration;
        if self.accuracy == Accuracy::Exact && near {
            return finish_exactly(problem, mdp.initial(), horizon, reached, self.limits);
        }
        // V* lies around one more backup; the middle of MacQueen's interval halves what is not known.
        let change = reached.change;
        let mut values = reached.backed;
        let mut rounding = backup_rounding(problem, &reached.values);
        let (residual, value_error_bound) = match horizon {
            Horizon::Discount(gamma) => {
                let shift = gamma * change.mid() / (1.0 - gamma);
                values.iter_mut().for_each(|v| *v += shift);
                // Rows sum to one up to rounding, by which the constant counts too.
                rounding = rounding.max(backup_rounding(problem, &values));
                let off = 0.5 * gamma * change.span();
                (off, (off + rounding) / (1.0 - gamma) + f64::EPSILON * (shift.abs() + sup_norm(&values)))
            }
            Horizon::Absorption(_) => (change.sup_norm(), horizon.value_error(change, rounding)),
        };
        let policy = Policy::from_pairs(mdp.pairs(), &first_best_pairs(problem, &reached.choice));
        Ok(Plan {
            value: start_value(mdp.initial(), &values),
            certificate: Certificate {
                status: if reached.converged { Status::Converged } else { Status::SweepLimit },
                residual,
                suboptimality_bound: horizon.suboptimality(change, change, 0.0, rounding),
                value_error_bound,
                sweeps: reached.sweeps,
            },
            policy,
            values,
            way: reached.way,
        })
    }

    /// Refuses settings outside their range.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |name, value: String, reason| Err(Error::InvalidSetting { name, value, reason });
        if let Accuracy::Tolerance(tolerance) = self.accuracy
            && !(tolerance > 0.0 && tolerance.is_finite())
        {
            return bad("tolerance", tolerance.to_string(), "expected a positive number");
        }
        if self.limits.max_sweeps == 0 {
            return bad("max_sweeps", "0".into(), "expected at least 1");
        }
        Ok(())
    }
}

/// Half the span of the change by a backup that leaves backed-up values, shifted, with a residual of `tolerance`: theirs is smaller by γ.
pub(super) fn change_within(tolerance: f64, gamma: f64) -> f64 {
    if gamma < 1.0 { tolerance / gamma } else { tolerance }
}

/// Residual, relative to the reward, at which exact planning turns from sweeps to exact evaluation.
pub(super) const EXACT_START: f64 = 1e-7;

/// Start values from here on are left alone: a sweep over them could overflow.
pub(super) const LARGEST_HINT: f64 = f64::MAX / 1e16;

/// Start values from here on say nothing about a problem: no policy is worth half as much.
fn largest_hint(problem: &Problem<'_>) -> f64 {
    let largest = problem.reward.max_abs();
    // Without a discount, values have no bound of their own, unless there is nothing to gain.
    let bound = if largest > 0.0 { 2.0 * largest / (1.0 - problem.gamma) } else { 0.0 };
    bound.min(LARGEST_HINT)
}

/// ξ·V.
pub(super) fn start_value(initial: &[f64], values: &[f64]) -> f64 {
    initial.iter().zip(values).map(|(p, v)| p * v).sum()
}

/// The lowest action with the chosen row's reward, for each state.
pub(super) fn first_best_pairs(problem: &Problem<'_>, choice: &[u32]) -> Vec<u32> {
    let pairs = problem.pairs();
    if problem.kernel.n_rows() == pairs.len() {
        // Every pair has a row of its own, of the same number.
        return choice.to_vec();
    }
    let of_state = |(state, &row): (usize, &u32)| {
        let fits = |&pair: &usize| {
            problem.kernel.row_of(pair) == row as usize
                && match &problem.reward {
                    RowReward::State(_) => true,
                    RowReward::Row { best, pairs } => pairs[pair] == best[row as usize],
                }
        };
        let range = pairs.of_state(state);
        range.clone().find(fits).unwrap_or(range.start) as u32
    };
    choice.iter().enumerate().map(of_state).collect()
}

fn start_values(mdp: &Mdp<'_>, reward: &Reward, problem: &Problem<'_>, start: Start<'_>) -> Result<Vec<f64>> {
    let mut values = match start {
        Start::Cold => problem.first_values(),
        Start::Values(values) => {
            check_length("start values", problem.n_states(), values.len())?;
            check_finite("start values", values)?;
            if sup_norm(values) < largest_hint(problem) { values.to_vec() } else { problem.first_values() }
        }
        Start::Policy(policy) => {
            if let Policy::Stationary(actions) = policy {
                pairs_of(mdp.pairs(), actions)?;
            }
            evaluate::values(mdp, reward, policy)?
        }
    };
    if problem.gamma == 1.0 {
        // Nothing is collected in absorbing states, and no backup would correct another value there.
        problem.kernel.absorbing().for_each(|s| values[s] = 0.0);
    }
    Ok(values)
}
