//! Stays of the published sepsis process under the published policy of its clinicians, for the tests and the benchmark of off-policy evaluation.
#![allow(dead_code)] // each user takes a part

use coirl::demos::Trajectory;
use coirl::domains::Sepsis;
use coirl::model::{ActionId, Cmdp, Mdp, StateId};
use coirl::plan::{Planner, Policy, evaluate};
use coirl_cohort::off_policy::{Behaviour, Episode, Record, StepPolicy};

const DEATH: StateId = StateId(713);
const SURVIVAL: StateId = StateId(714);
/// No stay is as long: the mean is ten steps.
const LONGEST: usize = 400;

pub(crate) struct Clinicians {
    pub(crate) model: Cmdp,
    pub(crate) policy: Policy,
    /// A policy with the greatest share of survivors: of equally good actions that which clinicians take most. A third of the states do not tell
    /// actions apart, and the lowest number there may be one that nobody ever takes.
    pub(crate) optimal: Policy,
}

impl Clinicians {
    pub(crate) fn new() -> coirl::Result<Self> {
        let model = Sepsis::published()?;
        let mdp = model.shared_mdp()?;
        let policy = Sepsis::published_clinicians()?;
        let optimal = Policy::stationary(model.pairs(), usual_among_best(&mdp, &policy)?)?;
        Ok(Self { policy, optimal, model })
    }

    /// The share of patients who survive under a policy, exactly.
    pub(crate) fn truth(&self, policy: &Policy) -> coirl::Result<f64> {
        let mdp = self.model.shared_mdp()?;
        evaluate::value(&mdp, &mdp.reward(&[1.0])?, policy)
    }

    /// So many stays from admission to death or survival, which is rewarded by one.
    pub(crate) fn record(&self, stays: usize, seed: u64) -> coirl::Result<Record> {
        let mdp = self.model.shared_mdp()?;
        let stay = |patient: u64| {
            let path = Trajectory::sample(&mdp, &self.policy, LONGEST, seed, patient)?;
            let ended = path.states.iter().position(|state| [DEATH, SURVIVAL].contains(state)).unwrap_or(LONGEST);
            let reward = |t: usize| f64::from(u8::from(path.states[t + 1] == SURVIVAL));
            Ok(Episode {
                patient,
                states: path.states[..ended].iter().map(|state| state.0).collect(),
                actions: path.actions[..ended].iter().map(|action| action.0).collect(),
                rewards: (0..ended).map(reward).collect(),
            })
        };
        let episodes = (0..stays as u64).map(stay).collect::<coirl::Result<Vec<_>>>()?;
        Record::new(self.model.n_states(), self.model.n_actions(), 1.0, episodes)
    }

    /// The clinicians' true probabilities at the steps of a record.
    pub(crate) fn known_behaviour(&self, record: &Record) -> coirl::Result<Behaviour> {
        Behaviour::known(record, self.step_policy(record, &self.policy)?)
    }

    pub(crate) fn step_policy(&self, record: &Record, policy: &Policy) -> coirl::Result<StepPolicy> {
        StepPolicy::following(record, self.model.pairs(), |_| policy)
    }
}

fn usual_among_best(mdp: &Mdp<'_>, clinicians: &Policy) -> coirl::Result<Vec<ActionId>> {
    let survival = mdp.reward(&[1.0])?;
    let plan = Planner::default().plan(mdp, &survival)?;
    let q = evaluate::q_values(mdp, &survival, &plan.values)?;
    let share = |pair: usize| match clinicians {
        Policy::Stochastic(shares) => shares[pair],
        _ => 0.0,
    };
    let usual = |state: usize| {
        let pairs = mdp.pairs().of_state(state);
        let best = pairs.clone().map(|pair| q[pair]).fold(f64::NEG_INFINITY, f64::max);
        let good = pairs.filter(|&pair| q[pair] >= best - 1e-9);
        good.max_by(|&a, &b| share(a).total_cmp(&share(b))).map_or(ActionId(0), |pair| mdp.pairs().action(pair))
    };
    Ok((0..mdp.n_states()).map(usual).collect())
}
