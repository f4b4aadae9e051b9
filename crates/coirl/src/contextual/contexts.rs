//! Planning for a list of contexts of any length.

use super::backend::{Backend, Cpu};
use crate::error::{Error, Result, check_length};
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, Context};
use crate::plan::{ManyOptions, PlannedReward, Planner};
use std::ops::ControlFlow;

/// Contexts whose results are held at a time.
const WAVE: usize = 1024;

/// Plans for every context with its own reward weights (row-major, `n_features` numbers per context), and hands the
/// results to `sink` in the order of the contexts. `sink` may stop the work. Memory does not grow with the contexts.
pub fn plan_contexts(
    model: &Cmdp,
    contexts: &[Context],
    weights: &[f64],
    planner: &Planner,
    options: ManyOptions,
    mut sink: impl FnMut(PlannedReward) -> ControlFlow<()>,
) -> Result<()> {
    let (k, backend) = (model.n_features(), Cpu { planner: *planner });
    check_length("weights", contexts.len() * k, weights.len())?;
    for (wave, (contexts_of_wave, rows)) in contexts.chunks(WAVE).zip(weights.chunks(WAVE * k)).enumerate() {
        let contexts_of_wave: Vec<&Context> = contexts_of_wave.iter().collect();
        for plan in backend.plan(model, &contexts_of_wave, rows, options)? {
            let index = wave * WAVE + plan.index;
            if sink(PlannedReward { index, ..plan }).is_break() {
                return Err(Error::Interrupted { done: index + 1, total: contexts.len() });
            }
        }
    }
    Ok(())
}

/// Plans exactly with a mapping in every context.
pub fn plan_mapping(
    model: &Cmdp,
    mapping: &dyn RewardMapping,
    contexts: &[Context],
    options: ManyOptions,
) -> Result<Vec<PlannedReward>> {
    let weights = mapping.weights_of_all(contexts)?;
    let mut plans = Vec::with_capacity(contexts.len());
    plan_contexts(model, contexts, &weights, &Planner::default(), options, |plan| {
        plans.push(plan);
        ControlFlow::Continue(())
    })?;
    Ok(plans)
}
