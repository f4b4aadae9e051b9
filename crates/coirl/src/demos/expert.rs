//! Experts: what answers a learner's question about a context.

use super::Trajectory;
use crate::error::{Error, Result, check_length};
use crate::mapping::LinearMapping;
use crate::model::{ActionId, Cmdp, Context, Mdp, Reward, StateId};
use crate::plan::{Plan, Planner, evaluate};
use crate::random::stream;
use rand::RngExt;

/// What an expert says about an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The agent does well enough.
    GoodEnough,
    /// It does not, and this is how it is done: the expert's feature expectations.
    Demonstration(Vec<f64>),
}

/// Somebody who can be asked. `query` numbers the questions, so that an expert whose judgement varies gives the same
/// answer to the same question.
pub trait Expert: Sync {
    /// Judges an agent with these feature expectations in the process of a context.
    fn answer(&self, query: u64, context: &Context, mdp: &Mdp<'_>, agent: &[f64]) -> Result<Answer>;

    /// The first step of a path at which the action is worse than the best by more than `tolerance`.
    fn first_mistake(
        &self,
        _query: u64,
        _context: &Context,
        _mdp: &Mdp<'_>,
        _path: &[(StateId, ActionId)],
        _tolerance: f64,
    ) -> Result<Option<usize>> {
        Err(unable("judging single actions"))
    }

    /// Shows what it would do from a state, for so many transitions.
    fn roll_out(
        &self,
        _query: u64,
        _context: &Context,
        _mdp: &Mdp<'_>,
        _from: StateId,
        _transitions: usize,
    ) -> Result<Trajectory> {
        Err(unable("showing roll-outs"))
    }
}

fn unable(what: &'static str) -> Error {
    let reason = "this expert cannot do that; a simulated expert with a known mapping can";
    Error::InvalidSetting { name: "expert", value: what.into(), reason }
}

/// An expert who acts optimally for a known mapping, or for one drawn near it.
///
/// | setting | expert |
/// |---|---|
/// | `radius = 0`, `trajectories = None` | optimal, shows its feature expectations |
/// | `radius > 0` | near-optimal: a mapping drawn in the ∞-ball around the truth (and in the unit box) for every query |
/// | `trajectories = Some((n, transitions))` | shows the mean discounted features of n sampled roll-outs only |
///
/// Each judges single actions and shows roll-outs when asked.
#[derive(Debug, Clone)]
pub struct SimulatedExpert {
    truth: LinearMapping,
    /// The agent is good enough if its value is lower than the best by no more than this.
    pub tolerance: f64,
    /// How far each query's mapping may be from the truth, in every entry.
    pub radius: f64,
    /// Roll-outs per demonstration and their transitions, where feature expectations are not shown.
    pub trajectories: Option<(usize, usize)>,
    /// Seed of mappings and roll-outs.
    pub seed: u64,
    planner: Planner,
}

impl SimulatedExpert {
    /// An optimal expert for a mapping that fits the model.
    pub fn new(model: &Cmdp, truth: LinearMapping, tolerance: f64, seed: u64) -> Result<Self> {
        check_length("mapping (columns)", model.n_features(), truth.n_features())?;
        if !(tolerance >= 0.0 && tolerance.is_finite()) {
            let reason = "expected a number that is not negative";
            return Err(Error::InvalidSetting { name: "tolerance", value: tolerance.to_string(), reason });
        }
        Ok(Self { truth, tolerance, radius: 0.0, trajectories: None, seed, planner: Planner::default() })
    }

    /// The mapping that this query's answer goes by.
    pub fn mapping(&self, query: u64) -> LinearMapping {
        let mut values = self.truth.values().to_vec();
        if self.radius > 0.0 {
            let mut rng = stream(self.seed, "near-optimal expert", query);
            for w in &mut values {
                let (low, high) = ((*w - self.radius).max(-1.0), (*w + self.radius).min(1.0));
                // A truth outside the unit box stays where it is.
                if low <= high {
                    *w = low + (high - low) * rng.random::<f64>();
                }
            }
        }
        self.truth.with_values(values)
    }

    /// Paths of the expert's own, independent of those that others draw with the same seed.
    fn path_seed(&self) -> u64 {
        stream(self.seed, "expert's paths", 0).random()
    }

    fn plan(&self, query: u64, context: &Context, mdp: &Mdp<'_>) -> Result<(Vec<f64>, Reward, Plan)> {
        let weights = self.mapping(query).weights(context)?;
        let reward = mdp.reward(&weights)?;
        let plan = self.planner.plan(mdp, &reward)?;
        Ok((weights, reward, plan))
    }
}

impl Expert for SimulatedExpert {
    fn answer(&self, query: u64, context: &Context, mdp: &Mdp<'_>, agent: &[f64]) -> Result<Answer> {
        let (weights, _, plan) = self.plan(query, context, mdp)?;
        let own = evaluate::feature_expectations(mdp, &plan.policy)?;
        let lost: f64 = weights.iter().zip(own.iter().zip(agent)).map(|(w, (x, y))| w * (x - y)).sum();
        if lost <= self.tolerance {
            return Ok(Answer::GoodEnough);
        }
        let Some((n, transitions)) = self.trajectories else { return Ok(Answer::Demonstration(own)) };
        if n == 0 {
            let reason = "an expert who shows roll-outs shows at least 1";
            return Err(Error::InvalidSetting { name: "trajectories", value: "0".into(), reason });
        }
        let mut mean = vec![0.0; own.len()];
        let gamma = mdp.criterion().discount();
        for i in 0..n {
            let number = query.wrapping_mul(n as u64).wrapping_add(i as u64);
            let path = Trajectory::sample(mdp, &plan.policy, transitions, self.path_seed(), number)?;
            let sum = path.discounted_features(mdp, gamma)?;
            mean.iter_mut().zip(&sum).for_each(|(m, x)| *m += x / n as f64);
        }
        Ok(Answer::Demonstration(mean))
    }

    fn first_mistake(
        &self,
        query: u64,
        context: &Context,
        mdp: &Mdp<'_>,
        path: &[(StateId, ActionId)],
        tolerance: f64,
    ) -> Result<Option<usize>> {
        let (_, reward, plan) = self.plan(query, context, mdp)?;
        let q = evaluate::q_values(mdp, &reward, &plan.values)?;
        for (t, (state, action)) in path.iter().enumerate() {
            let pair = mdp
                .pairs()
                .find(state.index(), action.index())
                .ok_or(Error::ActionNotAdmissible { state: state.index(), action: i64::from(action.0) })?;
            if q[pair] + tolerance < plan.values[state.index()] {
                return Ok(Some(t));
            }
        }
        Ok(None)
    }

    fn roll_out(
        &self,
        query: u64,
        context: &Context,
        mdp: &Mdp<'_>,
        from: StateId,
        transitions: usize,
    ) -> Result<Trajectory> {
        let (_, _, plan) = self.plan(query, context, mdp)?;
        Trajectory::sample(&mdp.clone().starting_in(from)?, &plan.policy, transitions, self.path_seed(), query)
    }
}

/// An expert of whom one demonstration per query is on record. It cannot tell how much worse the agent is, only whether
/// it acts differently: by more than `tolerance` in some feature expectation.
#[derive(Debug, Clone)]
pub struct RecordedExpert {
    demonstrations: Vec<Vec<f64>>,
    tolerance: f64,
}

impl RecordedExpert {
    /// From the feature expectations of the queries in order.
    pub fn new(demonstrations: Vec<Vec<f64>>, tolerance: f64) -> Self {
        Self { demonstrations, tolerance }
    }

    /// What the record says about an agent: its demonstration, where some feature expectation differs by more than `tolerance`.
    pub fn judge(recorded: &[f64], agent: &[f64], tolerance: f64) -> Answer {
        let differs = recorded.iter().zip(agent).any(|(x, y)| (x - y).abs() > tolerance);
        if differs { Answer::Demonstration(recorded.to_vec()) } else { Answer::GoodEnough }
    }
}

impl Expert for RecordedExpert {
    fn answer(&self, query: u64, _context: &Context, _mdp: &Mdp<'_>, agent: &[f64]) -> Result<Answer> {
        let n = self.demonstrations.len();
        let own = self
            .demonstrations
            .get(query as usize)
            .ok_or_else(|| Error::shape("query of a recorded expert", format!("below {n}"), query))?;
        Ok(Self::judge(own, agent, self.tolerance))
    }
}
