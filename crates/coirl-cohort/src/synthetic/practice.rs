//! How clinicians act: optimally for what they want, with lapses.
//!
//! They keep to admissible actions. At the default discount that is no restriction: what leads to the unknown is never optimal there.

use super::settings::{Clinician, Synthetic};
use coirl::Result;
use coirl::domains::sepsis::N_CLUSTERS;
use coirl::domains::{Inadmissible, Patient, Sepsis};
use coirl::mapping::RewardMapping;
use coirl::model::{ActionId, Cmdp, Context, StateId};
use coirl::plan::evaluate::stage_distributions;
use coirl::plan::{ManyOptions, Planner, Policy};
use coirl::random::outcome;
use rand::RngExt;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Blocs of four hours in 90 days: who is still in care then has survived them.
const MOST_BLOCS: usize = 540;

/// The simulator with its clinicians.
pub(super) struct Practice {
    model: Cmdp,
    truth: Box<dyn RewardMapping>,
    usual: Policy,
    lapses: f64,
}

/// What happened to a patient: one state more than actions.
pub(super) struct Course {
    pub(super) states: Vec<StateId>,
    pub(super) actions: Vec<ActionId>,
    pub(super) lapsed: Vec<bool>,
}

impl Practice {
    pub(super) fn new(settings: &Synthetic) -> Result<Self> {
        let sepsis = Sepsis { inadmissible: Inadmissible::Masked, discount: settings.discount, ..Sepsis::default() };
        let truth: Box<dyn RewardMapping> = match settings.clinician {
            Clinician::Linear => Box::new(Sepsis::linear_mapping()),
            Clinician::Threshold => Box::new(Sepsis::threshold_mapping()?),
        };
        Ok(Self { model: sepsis.build()?, truth, usual: sepsis.clinicians()?, lapses: settings.lapses })
    }

    /// What clinicians want for these patients, row by row.
    pub(super) fn wishes(&self, patients: &[Patient]) -> Result<Vec<f64>> {
        let contexts: Vec<Context> = patients.iter().map(|patient| patient.context.clone()).collect();
        self.truth.weights_of_all(&contexts)
    }

    /// Optimal policies for rewards, row by row; each distinct reward is planned for once.
    pub(super) fn plans(&self, wishes: &[f64]) -> Result<Vec<Arc<Policy>>> {
        let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut distinct: Vec<f64> = Vec::new();
        let mut plan_of = Vec::new();
        for reward in wishes.chunks_exact(self.model.n_features()) {
            let next = known.len();
            let plan = *known.entry(reward.iter().map(|w| w.to_bits()).collect()).or_insert(next);
            if plan == next {
                distinct.extend(reward);
            }
            plan_of.push(plan);
        }
        let mut policies = Vec::with_capacity(known.len());
        let options = ManyOptions { feature_expectations: false, values: false };
        Planner::default().plan_many(&self.model.shared_mdp()?, &distinct, options, |plan| {
            policies.push(Arc::new(plan.policy));
            ControlFlow::Continue(())
        })?;
        Ok(plan_of.into_iter().map(|plan| policies[plan].clone()).collect())
    }

    /// The stay of a patient whose clinician follows this policy, to its end.
    pub(super) fn course(&self, start: StateId, policy: &Policy, rng: &mut impl RngExt) -> Result<Course> {
        let (pairs, mdp) = (self.model.pairs(), self.model.shared_mdp()?);
        let planned = stage_distributions(pairs, policy, 1)?;
        let usual = stage_distributions(pairs, &self.usual, 1)?;
        let mut course = Course { states: vec![start], actions: Vec::new(), lapsed: Vec::new() };
        let mut state = start.index();
        while state < N_CLUSTERS && course.actions.len() < MOST_BLOCS {
            // Three numbers a step, used or not: a course without lapses is the same up to the first one.
            let (slip, choice, chance): (f64, f64, f64) = (rng.random(), rng.random(), rng.random());
            let lapsed = slip < self.lapses;
            let stage = if lapsed { usual[0] } else { planned[0] };
            let pair = outcome(pairs.of_state(state).map(|pair| (pair, stage.share(state, pair))), choice);
            state = outcome(mdp.kernel().successors(pair), chance);
            course.actions.push(pairs.action(pair));
            course.states.push(StateId(state as u32));
            course.lapsed.push(lapsed);
        }
        Ok(course)
    }

    /// The policy of a clinician with lapses: a share of each action in each pair of the simulator's states and actions.
    pub(super) fn shares(&self, policy: &Policy, lapses: f64) -> Result<Vec<f64>> {
        let pairs = self.model.pairs();
        let planned = stage_distributions(pairs, policy, 1)?;
        let usual = stage_distributions(pairs, &self.usual, 1)?;
        let n_actions = pairs.n_actions();
        let mut shares = vec![0.0; pairs.n_states() * n_actions];
        for s in 0..pairs.n_states() {
            for pair in pairs.of_state(s) {
                let share = (1.0 - lapses) * planned[0].share(s, pair) + lapses * usual[0].share(s, pair);
                shares[s * n_actions + pairs.action(pair).index()] = share;
            }
        }
        Ok(shares)
    }

    /// Share of actions that are lapses.
    pub(super) fn lapses(&self) -> f64 {
        self.lapses
    }

    /// f*.
    pub(super) fn mapping(&self) -> &dyn RewardMapping {
        self.truth.as_ref()
    }
}
