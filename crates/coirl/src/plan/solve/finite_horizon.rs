//! Backward induction over a finite number of decisions.

use crate::error::{Error, Result};
use crate::model::{Mdp, Reward};
use crate::plan::Way;
use crate::plan::certificate::{Certificate, Status, backup_rounding};
use crate::plan::kernels::linear::sup_norm;
use crate::plan::planner::{Plan, start_value};
use crate::plan::policy::Policy;
use crate::plan::problem::Problem;
use crate::plan::solve::exact::{TIE_TOLERANCE, pair_values};

/// Actions beyond this many are refused: the policy alone would not fit in memory.
const MAX_STAGED_ACTIONS: usize = 1 << 31;

/// Refuses policies in stages that memory would not hold.
pub(in crate::plan) fn check_size(what: &'static str, per_stage: usize, steps: usize) -> Result<()> {
    let count = per_stage.saturating_mul(steps);
    if count > MAX_STAGED_ACTIONS {
        return Err(Error::TooLarge { what, count, limit: MAX_STAGED_ACTIONS });
    }
    Ok(())
}

/// V_0 = 0 and V_{n+1}(s) = max_a R(s, a) + γ Σ P V_n, with ties as in exact planning. Exact up to rounding.
pub(in crate::plan) fn plan(mdp: &Mdp<'_>, reward: &Reward, steps: usize, discount: f64) -> Result<Plan> {
    let problem = Problem { gamma: discount, ..Problem::new(mdp, reward)? };
    let pairs = mdp.pairs();
    let n_states = mdp.n_states();
    check_size("states × horizon", n_states, steps)?;
    let mut values = vec![0.0; n_states];
    let mut stages = Vec::with_capacity(steps);
    let mut rounding = 0.0;
    let mut tie_loss = 0.0;
    for _ in 0..steps {
        let q = pair_values(&problem, &values);
        rounding = discount * rounding + backup_rounding(&problem, &values);
        let tolerance = TIE_TOLERANCE * sup_norm(&q);
        let mut stage = Vec::with_capacity(n_states);
        let mut loss: f64 = 0.0;
        for (s, value) in values.iter_mut().enumerate() {
            let range = pairs.of_state(s);
            let best = q[range.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let pair = range.clone().find(|&pair| q[pair] >= best - tolerance).unwrap_or(range.start);
            stage.push(pairs.action(pair));
            loss = loss.max(best - q[pair]);
            *value = q[pair];
        }
        tie_loss = discount * tie_loss + loss;
        stages.push(stage);
    }
    stages.reverse();
    Ok(Plan {
        policy: Policy::Staged(stages),
        value: start_value(mdp.initial(), &values),
        certificate: Certificate {
            status: Status::Exact,
            residual: 0.0,
            suboptimality_bound: tie_loss + 2.0 * rounding,
            value_error_bound: tie_loss + rounding,
            sweeps: steps,
        },
        values,
        way: Way::Asked,
    })
}
