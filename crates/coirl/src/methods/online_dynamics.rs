//! Learning reward and dynamics together, as contexts arrive.
//!
//! Only the features, the admissible actions and the criterion are known. In every round demonstrations come in for some
//! contexts; then
//!
//! 1. where there is an environment to try things in, the agent of the round before acts in the same contexts (at random
//!    in the first round), and what happens is counted;
//! 2. the demonstrations' transitions are counted, and the dynamics are estimated anew from everything counted so far;
//! 3. the learner goes on from its last mapping, on all demonstrations so far. Agents are planned and feature
//!    expectations estimated in the dynamics as they are now known.
//!
//! An expert's transitions alone leave the actions that experts avoid to the prior; the agent's own roll-outs go exactly
//! where its model promises too much. A round costs one estimate of the dynamics and one run of the learner.

use super::{Fitted, Method, Settings, fit};
use crate::agent::Agent;
use crate::agent::act;
use crate::demos::{Demonstration, Estimator, Evidence, Train, Trajectory};
use crate::dynamics::{
    Learned, LogLikelihood, Observations, Prior, StartCounts, Structure, Transition, estimate, log_likelihood,
    unsupported_share,
};
use crate::error::{Error, Result};
use crate::learn::{Problem, Recorder, Watch};
use crate::model::{Cmdp, Context};
use crate::plan::Policy;
use crate::score::{Examination, Score};
use rayon::prelude::*;

/// Pairs with fewer observations are thin, for the record of a round.
pub const THIN_SUPPORT: f64 = 5.0;

/// How the dynamics are learned.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicsLearning {
    /// How they may depend on the context.
    pub structure: Structure,
    /// What is believed of pairs before they are seen.
    pub prior: Prior,
    /// Where the start distribution is learned from first states as well: the strength of the model's own as its prior.
    pub start: Option<f64>,
    /// How feature expectations are read off trajectories, in the dynamics as they are known; see [`Problem::new`] for what `None` does.
    pub estimator: Option<Estimator>,
}

impl Default for DynamicsLearning {
    /// One kernel, the prior's default, the model's start.
    fn default() -> Self {
        Self { structure: Structure::Pooled, prior: Prior::default(), start: None, estimator: None }
    }
}

/// The world itself, or a simulator of it, to try a policy in.
pub trait Environment {
    /// What happened when the policy was followed in a context. `visit` numbers the visits from 0, so that a simulator
    /// gives the same answer to the same visit.
    fn roll_outs(&self, visit: u64, context: &Context, policy: &Policy) -> Result<Vec<Trajectory>>;
}

impl<F: Fn(u64, &Context, &Policy) -> Result<Vec<Trajectory>>> Environment for F {
    fn roll_outs(&self, visit: u64, context: &Context, policy: &Policy) -> Result<Vec<Trajectory>> {
        self(visit, context, policy)
    }
}

/// A model that stands in for the world.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedEnvironment<'a> {
    /// The true model.
    pub model: &'a Cmdp,
    /// Roll-outs per visit.
    pub roll_outs: u64,
    /// Transitions of each.
    pub transitions: usize,
    /// Seed of the roll-outs.
    pub seed: u64,
}

impl Environment for SimulatedEnvironment<'_> {
    fn roll_outs(&self, visit: u64, context: &Context, policy: &Policy) -> Result<Vec<Trajectory>> {
        let mdp = self.model.mdp(context)?;
        let first = visit.wrapping_mul(self.roll_outs);
        let draw = |i| Trajectory::sample(&mdp, policy, self.transitions, self.seed, first.wrapping_add(i));
        (0..self.roll_outs).map(draw).collect()
    }
}

/// What a round came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Round {
    /// Number of the round, from 1.
    pub round: u64,
    /// Demonstrations so far.
    pub demonstrations: u64,
    /// Transitions counted so far, the agent's among them.
    pub transitions: u64,
    /// Transitions of the agent's own so far.
    pub agent_transitions: u64,
    /// Pairs seen so far.
    pub pairs_seen: usize,
    /// How well the dynamics of the round before foresaw the transitions of this one; nothing in the first round.
    pub foreseen: Option<LogLikelihood>,
    /// Log-likelihood of everything counted, in the dynamics learned from it.
    pub log_likelihood: LogLikelihood,
    /// Loss(W)/‖W‖₂ on all demonstrations so far, in the learned dynamics.
    pub loss: Option<f64>,
    /// Share of the agent's visits, in the contexts so far, on pairs with fewer than [`THIN_SUPPORT`] observations.
    pub unsupported_share: f64,
    /// Score of what was learned about the reward: planned in the true model. Where the truth is known.
    pub score: Option<Score>,
    /// Score of what the agent would do by itself: planned in the learned model, acting in the true one.
    pub acting: Option<Score>,
}

/// Demonstrations, counts and estimates so far.
pub struct OnlineDynamics<'a> {
    given: &'a Cmdp,
    how: DynamicsLearning,
    observations: Observations,
    starts: StartCounts,
    demonstrations: Vec<Demonstration>,
    current: Option<Current>,
    agent: Option<Agent>,
    visits: u64,
    agent_transitions: u64,
    foreseen: Option<LogLikelihood>,
    rounds: u64,
}

/// The dynamics as they are known, and the model with them.
struct Current {
    learned: Learned,
    model: Cmdp,
}

impl<'a> OnlineDynamics<'a> {
    /// Nothing seen yet. Of the model everything but the dynamics (and the start, where that is learned) is taken.
    pub fn new(given: &'a Cmdp, how: DynamicsLearning) -> Self {
        Self {
            observations: Observations::new(given.pairs().clone()),
            starts: StartCounts::new(given.n_states()),
            given,
            how,
            demonstrations: Vec::new(),
            current: None,
            agent: None,
            visits: 0,
            agent_transitions: 0,
            foreseen: None,
            rounds: 0,
        }
    }

    /// Takes in the demonstrations of a round, lets the agent try itself in the same contexts where there is an environment,
    /// and estimates the dynamics anew. Demonstrations without trajectories say nothing about them. After an error the
    /// counts may hold a part of the round.
    pub fn observe(&mut self, batch: &[Demonstration], environment: Option<&dyn Environment>) -> Result<()> {
        let mut seen: Vec<(Context, Vec<Transition>)> = Vec::new();
        if let Some(environment) = environment {
            let contexts: Vec<Context> = batch.iter().map(|demonstration| demonstration.context().clone()).collect();
            for (context, policy) in contexts.iter().zip(self.policies(&contexts)?) {
                let paths = environment.roll_outs(self.visits, context, &policy)?;
                self.visits += 1;
                for path in &paths {
                    path.check(self.given.pairs())?;
                    self.agent_transitions += path.actions.len() as u64;
                }
                seen.push((context.clone(), paths.iter().flat_map(Trajectory::transitions).collect()));
            }
        }
        for demonstration in batch {
            let Evidence::Trajectories(paths) = demonstration.evidence() else { continue };
            for path in paths {
                path.check(self.given.pairs())?;
                self.starts.add(path.states[0])?;
            }
            let transitions = paths.iter().flat_map(Trajectory::transitions).collect();
            seen.push((demonstration.context().clone(), transitions));
        }
        let mut new = Observations::new(self.given.pairs().clone());
        for (context, transitions) in seen {
            new.add(&context, transitions.iter().copied())?;
            self.observations.add(&context, transitions)?;
        }
        self.foreseen = match &self.current {
            Some(current) => Some(log_likelihood(&current.learned.dynamics, &new)?),
            None => None,
        };
        self.demonstrations.extend_from_slice(batch);
        let learned = estimate(&self.observations, &self.how.structure, &self.how.prior)?;
        let mut model = self.given.clone().with_dynamics(learned.dynamics.clone())?;
        if let Some(strength) = self.how.start {
            model = model.with_initial(self.starts.distribution(strength, self.given.initial())?)?;
        }
        self.current = Some(Current { learned, model });
        Ok(())
    }

    /// What the agent does in these contexts as it is now; at random before anything was learned.
    fn policies(&self, contexts: &[Context]) -> Result<Vec<Policy>> {
        match (&self.current, &self.agent) {
            (Some(current), Some(agent)) => {
                let behaviours = act(&current.model, agent, contexts)?;
                Ok(behaviours.into_iter().flat_map(|list| list.into_iter().next()).map(|one| one.policy).collect())
            }
            _ => Ok(vec![self.given.random_policy(); contexts.len()]),
        }
    }

    /// The model with the dynamics as they are now known.
    pub fn model(&self) -> Result<&Cmdp> {
        Ok(&self.current()?.model)
    }

    /// The dynamics as they are now known, with their support.
    pub fn learned(&self) -> Result<&Learned> {
        Ok(&self.current()?.learned)
    }

    fn current(&self) -> Result<&Current> {
        self.current.as_ref().ok_or_else(|| Error::shape("rounds of demonstrations", "at least 1", 0))
    }

    /// Everything demonstrated so far.
    pub fn demonstrations(&self) -> &[Demonstration] {
        &self.demonstrations
    }

    /// The settings of the next run: from the last mapping, where there is one.
    pub fn settings(&self, settings: &Settings) -> Result<Settings> {
        let mut settings = settings.clone();
        // The choice model starts from nothing and ends in the same place.
        let continues = !matches!(settings.method, Method::Choice(_));
        if let Some(agent) = self.agent.as_ref().filter(|_| continues) {
            settings.initial = Some(agent.mapping()?.values().to_vec());
        }
        Ok(settings)
    }

    /// All demonstrations so far, in the dynamics as they are now known.
    pub fn problem(&self) -> Result<Problem<'_>> {
        Problem::new(self.model()?, &Train::new(self.demonstrations.clone()), self.how.estimator.as_ref())
    }

    /// Goes on learning the mapping in the dynamics as they are now known, from the last mapping. For methods that learn a
    /// mapping.
    pub fn learn(
        &mut self,
        settings: &Settings,
        examination: Option<&Examination<'_>>,
        recorder: &mut dyn Recorder,
    ) -> Result<(Fitted, Round)> {
        let fitted = fit(&self.problem()?, &self.settings(settings)?, Watch::default(), recorder)?;
        let round = self.record(&fitted, examination)?;
        self.rounds += 1;
        self.agent = Some(fitted.agent.clone());
        Ok((fitted, round))
    }

    /// What this round came to, given what was learned in it. Scores are taken where there is an examination in the true model.
    pub fn record(&self, fitted: &Fitted, examination: Option<&Examination<'_>>) -> Result<Round> {
        let Current { learned, model } = self.current()?;
        let acting = |examination: &Examination<'_>| examination.score_planned_in(model, &fitted.agent);
        Ok(Round {
            round: self.rounds + 1,
            demonstrations: self.demonstrations.len() as u64,
            transitions: self.observations.n_transitions(),
            agent_transitions: self.agent_transitions,
            pairs_seen: learned.support.n_seen(),
            foreseen: self.foreseen,
            log_likelihood: learned.log_likelihood,
            loss: fitted.certificate.loss,
            unsupported_share: unsupported_visits(&self.problem()?, &fitted.agent, learned, THIN_SUPPORT)?,
            score: examination.map(|examination| examination.score(&fitted.agent)).transpose()?,
            acting: examination.map(acting).transpose()?,
        })
    }
}

/// Mean share of an agent's visits on pairs with fewer than `least` observations, over the contexts of a problem in learned
/// dynamics, from the starts of its demonstrations.
pub fn unsupported_visits(problem: &Problem<'_>, agent: &Agent, learned: &Learned, least: f64) -> Result<f64> {
    let contexts: Vec<Context> = (0..problem.len()).map(|i| problem.context(i).clone()).collect();
    let behaviours = act(problem.model(), agent, &contexts)?;
    let share = |i: usize| -> Result<f64> {
        let (mdp, support) = (problem.mdp(i)?, learned.support_of(&contexts[i])?);
        behaviours[i]
            .iter()
            .try_fold(0.0, |sum, one| Ok(sum + one.share * unsupported_share(&mdp, &one.policy, &support, least)?))
    };
    let shares: Vec<f64> = (0..problem.len()).into_par_iter().map(share).collect::<Result<_>>()?;
    Ok(shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The end of an online run.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedOnline {
    /// The last round's result.
    pub fitted: Fitted,
    /// The model with the dynamics learned by then.
    pub model: Cmdp,
    /// These dynamics, with their support.
    pub learned: Learned,
    /// One record per round.
    pub rounds: Vec<Round>,
}

/// Learns reward and dynamics in rounds, one per batch of demonstrations.
pub fn fit_online(
    given: &Cmdp,
    batches: &[Vec<Demonstration>],
    how: &DynamicsLearning,
    settings: &Settings,
    environment: Option<&dyn Environment>,
    examination: Option<&Examination<'_>>,
    recorder: &mut dyn Recorder,
) -> Result<FittedOnline> {
    let mut online = OnlineDynamics::new(given, how.clone());
    let (mut rounds, mut last) = (Vec::with_capacity(batches.len()), None);
    for batch in batches {
        online.observe(batch, environment)?;
        let (fitted, round) = online.learn(settings, examination, recorder)?;
        rounds.push(round);
        last = Some(fitted);
    }
    match (last, online.current) {
        (Some(fitted), Some(Current { learned, model })) => Ok(FittedOnline { fitted, model, learned, rounds }),
        _ => Err(Error::shape("rounds of demonstrations", "at least 1", 0)),
    }
}
