//! Where plans are made: the seam between what is planned for and what it is planned with.

use crate::error::{Result, check_finite, check_length};
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{ManyOptions, PlannedReward, Planner, Start};
use rayon::prelude::*;

/// Plans for many contexts at once. A back end decides how (one processor, an accelerator, a cluster), never what: for the same
/// model, contexts and rewards every back end returns the same policies.
pub trait Backend: Send + Sync {
    /// One plan per context, in the order of the contexts; `weights` holds `model.n_features()` numbers for each.
    fn plan(
        &self,
        model: &Cmdp,
        contexts: &[&Context],
        weights: &[f64],
        wanted: ManyOptions,
    ) -> Result<Vec<PlannedReward>>;
}

/// The planner on the processor of this machine, with all its threads.
///
/// With shared dynamics, and within a cluster of contexts, rewards are planned in blocks; a mixture has a kernel per
/// context, and contexts are planned side by side.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu {
    /// How one kernel is planned on; the default plans exactly.
    pub planner: Planner,
}

impl Backend for Cpu {
    fn plan(
        &self,
        model: &Cmdp,
        contexts: &[&Context],
        weights: &[f64],
        wanted: ManyOptions,
    ) -> Result<Vec<PlannedReward>> {
        let k = model.n_features();
        check_length("weights", contexts.len() * k, weights.len())?;
        check_finite("weights", weights)?;
        if let [context] = contexts {
            let mdp = model.mdp(context)?;
            let plan = self.planner.plan_from(&mdp, &mdp.reward(weights)?, Start::Cold)?;
            return Ok(vec![self.planner.one_of_many(&mdp, plan, wanted)?]);
        }
        match model.dynamics() {
            Dynamics::Shared(_) if contexts.is_empty() => Ok(Vec::new()),
            Dynamics::Shared(_) => self.planner.plan_rows(&model.mdp(contexts[0])?, weights, wanted),
            Dynamics::Mixture(_) => {
                let alone = |(context, w): (&&Context, &[f64])| self.planner.plan_rows(&model.mdp(context)?, w, wanted);
                let plans: Vec<_> =
                    contexts.par_iter().zip(weights.par_chunks_exact(k)).map(alone).collect::<Result<_>>()?;
                Ok(numbered(plans.into_iter().flatten().enumerate()))
            }
            Dynamics::Clusters(clusters) => {
                let mut groups = vec![Vec::new(); clusters.kernels().len()];
                for (i, context) in contexts.iter().enumerate() {
                    groups[clusters.assign(context)?].push(i);
                }
                let mut plans = Vec::with_capacity(contexts.len());
                for members in groups.iter().filter(|members| !members.is_empty()) {
                    let rows: Vec<f64> = members.iter().flat_map(|&i| &weights[i * k..(i + 1) * k]).copied().collect();
                    let own = self.planner.plan_rows(&model.mdp(contexts[members[0]])?, &rows, wanted)?;
                    plans.extend(numbered(members.iter().copied().zip(own)));
                }
                plans.sort_by_key(|plan| plan.index);
                Ok(plans)
            }
        }
    }
}

/// Plans with the places that they have among all.
fn numbered(plans: impl Iterator<Item = (usize, PlannedReward)>) -> Vec<PlannedReward> {
    plans.map(|(index, plan)| PlannedReward { index, ..plan }).collect()
}
