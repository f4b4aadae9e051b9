//! A posteriori: what one backup says about a policy that somebody else has found.

use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{Criterion, Mdp, Reward};
use crate::plan::certificate::{Horizon, backup_rounding};
use crate::plan::kernels::sweep::Change;
use crate::plan::policy::{Policy, pairs_of};
use crate::plan::problem::Problem;
use crate::plan::solve::exact::pair_values;

/// No policy is better than this one by more than the result, in any state. Any `values` give a true bound; the policy's
/// own give the sharpest. For stationary policies under the discounted criterion; one pass over the kernel.
pub fn suboptimality_bound(mdp: &Mdp<'_>, reward: &Reward, values: &[f64], policy: &Policy) -> Result<f64> {
    let mismatch = |hint| Error::CriterionMismatch {
        operation: "the bound of one backup",
        criterion: mdp.criterion().name(),
        hint,
    };
    let Criterion::Discounted { discount } = mdp.criterion() else {
        return Err(mismatch("it needs the discounted criterion; plan instead"));
    };
    let Policy::Stationary(actions) = policy else {
        return Err(mismatch("it needs a policy with one action per state"));
    };
    let problem = Problem::new(mdp, reward)?;
    check_length("values", mdp.n_states(), values.len())?;
    check_finite("values", values)?;
    let q = pair_values(&problem, values);
    let (mut backup, mut own, mut gap) = (Change::NONE, Change::NONE, 0.0_f64);
    for (state, &pair) in pairs_of(mdp.pairs(), actions)?.iter().enumerate() {
        let best = q[mdp.pairs().of_state(state)].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        backup.add(best - values[state]);
        own.add(q[pair as usize] - values[state]);
        gap = gap.max(best - q[pair as usize]);
    }
    let rounding = backup_rounding(&problem, values);
    Ok(Horizon::Discount(discount).suboptimality(backup, own, gap, rounding))
}
