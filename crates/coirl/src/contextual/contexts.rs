//! Planning for many contexts of a contextual model, whatever its dynamics.

use crate::error::{Error, Result, check_length};
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{ManyOptions, PlannedReward, Planner};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Contexts whose results are held at a time.
const WAVE: usize = 1024;

/// Plans for every context with its own reward weights (row-major, `n_features` numbers per context), and hands the
/// results to `sink` in the order of the contexts. `sink` may stop the work. Memory does not grow with the contexts.
///
/// With shared dynamics, and within a cluster of contexts, rewards are planned in blocks; a mixture has a kernel per
/// context, and contexts are planned side by side.
pub fn plan_contexts(
    model: &Cmdp,
    contexts: &[Context],
    weights: &[f64],
    planner: &Planner,
    options: ManyOptions,
    mut sink: impl FnMut(PlannedReward) -> ControlFlow<()>,
) -> Result<()> {
    let k = model.n_features();
    check_length("weights", contexts.len() * k, weights.len())?;
    for (wave, contexts_of_wave) in contexts.chunks(WAVE).enumerate() {
        let first = wave * WAVE;
        let rows = &weights[first * k..(first + contexts_of_wave.len()) * k];
        for (i, result) in plan_wave(model, contexts_of_wave, rows, planner, options)?.into_iter().enumerate() {
            if sink(PlannedReward { index: first + i, ..result }).is_break() {
                return Err(Error::Interrupted { done: first + i + 1, total: contexts.len() });
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

fn plan_wave(
    model: &Cmdp,
    contexts: &[Context],
    weights: &[f64],
    planner: &Planner,
    options: ManyOptions,
) -> Result<Vec<PlannedReward>> {
    let k = model.n_features();
    let plan_group = |members: &[usize]| -> Result<Vec<PlannedReward>> {
        let mdp = model.mdp(&contexts[members[0]])?;
        let rows: Vec<f64> = members.iter().flat_map(|&i| &weights[i * k..(i + 1) * k]).copied().collect();
        let mut results = Vec::with_capacity(members.len());
        planner.plan_many(&mdp, &rows, options, |result| {
            results.push(PlannedReward { index: members[result.index], ..result });
            ControlFlow::Continue(())
        })?;
        Ok(results)
    };
    let mut results: Vec<PlannedReward> = match model.dynamics() {
        Dynamics::Shared(_) => plan_group(&(0..contexts.len()).collect::<Vec<_>>())?,
        Dynamics::Clusters(clusters) => {
            let mut groups = vec![Vec::new(); clusters.kernels().len()];
            for (i, context) in contexts.iter().enumerate() {
                groups[clusters.assign(context)?].push(i);
            }
            let groups = groups.iter().filter(|members| !members.is_empty());
            groups.map(|members| plan_group(members)).collect::<Result<Vec<_>>>()?.concat()
        }
        Dynamics::Mixture(_) => {
            let alone = (0..contexts.len()).into_par_iter().map(|i| plan_group(&[i]));
            alone.collect::<Result<Vec<_>>>()?.concat()
        }
    };
    results.sort_by_key(|result| result.index);
    Ok(results)
}
