//! What the methods of apprenticeship learning share: policies met so far, a mixture of them, and the game that it plays.
//!
//! With contexts inside the state (see [`super::LargeMdp`]) an expert is one point and an agent another,
//!
//! ```text
//! μ_E = mean of c ⊙ μ*_c,        μ̄ = Σ_j λ_j M_j,   M_j = mean of c ⊙ μ_c of the policy that plans for W_j,   λ in the simplex.
//! ```
//!
//! All four methods play the zero-sum game max over mixtures, min over rewards w in a set, of w·(μ̄ − μ_E): by what an agent can be
//! sure to beat the expert when the worst reward of the set is the true one. A mixture gives a lower bound of its value, and the
//! plan for any one reward an upper bound, max_π w·(μ^π − μ_E). Where w ranges over the unit ball the value is minus the distance
//! of μ_E from the policies' polytope: zero, unless the demonstrations are noisy. A step plans once in every context.

use super::large_mdp::LargeMdp;
use crate::agent::{Agent, Mixture};
use crate::error::Result;
use crate::learn::{GameRewards, GameValue, Problem, Record, Step};
use crate::optim::{Hull, dot, norm};
use crate::random::stream;
use rand::RngExt;

/// How the large MDP is planned in. The policies are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum States {
    /// Context by context, in blocks.
    #[default]
    Separate,
    /// As one process with all contexts in its state, as it was published; its cost is that of its size.
    Joint,
}

/// Differences below this share of the largest feature expectations are rounding.
const ROUNDING: f64 = 1e-11;

/// The policies met and how they are mixed.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apprentice {
    /// Feature expectations of the policies met with their shares in the mixture, around μ_E.
    pub(super) hull: Hull,
    /// W that the next policy plans for.
    pub(super) next: Vec<f64>,
    /// The rewards of the policies met.
    rewards: Vec<Vec<f64>>,
    /// The largest ‖μ‖₂ met.
    scale: f64,
    /// The least upper bound of the game's value, once there is one.
    upper: Option<f64>,
    /// Made when first needed: a function of the problem alone.
    #[serde(skip)]
    large_mdp: Option<LargeMdp>,
}

impl Apprentice {
    /// Before the first policy, which will plan for this reward.
    pub(super) fn start(problem: &Problem<'_>, first: Vec<f64>) -> Result<Self> {
        let mut expert = vec![0.0; problem.n_parameters()];
        let nothing = vec![0.0; problem.n_features()];
        for i in 0..problem.len() {
            problem.data().add_difference(
                i,
                problem.data().expectations(i)?,
                &nothing,
                1.0 / problem.len() as f64,
                &mut expert,
            );
        }
        let (scale, hull) = (norm(&expert), Hull::new(expert));
        Ok(Self { scale, hull, next: first, rewards: Vec::new(), upper: None, large_mdp: None })
    }

    /// Whether these are policies of such a problem.
    pub(super) fn fits(&self, problem: &Problem<'_>) -> bool {
        let n = problem.n_parameters();
        let rewards = std::iter::once(&self.next).chain(&self.rewards);
        self.hull.fits(n)
            && self.rewards.len() == self.hull.corners().len()
            && rewards.into_iter().all(|w| w.len() == n)
    }

    /// Before the first policy, which will plan for a given reward, or for one with random entries in [0, 1].
    pub(super) fn start_anywhere(problem: &Problem<'_>, initial: Option<&[f64]>, seed: u64) -> Result<Self> {
        let mut rng = stream(seed, "first reward", 0);
        let mut random = || (0..problem.n_parameters()).map(|_| rng.random::<f64>()).collect();
        Self::start(problem, initial.map_or_else(&mut random, <[f64]>::to_vec))
    }

    /// Plans for the next reward: the feature expectations of the policy.
    pub(super) fn respond(&mut self, problem: &Problem<'_>, states: States) -> Result<Vec<f64>> {
        let point = match states {
            States::Separate => {
                let all = problem.data().all();
                let nothing = vec![0.0; problem.n_features()];
                let mut point = vec![0.0; problem.n_parameters()];
                for (i, agent) in problem.best_responses(&self.next, &all)?.iter().enumerate() {
                    problem.data().add_difference(
                        i,
                        &agent.feature_expectations,
                        &nothing,
                        1.0 / all.len() as f64,
                        &mut point,
                    );
                }
                point
            }
            States::Joint => {
                let large = match self.large_mdp.take() {
                    Some(large) => large,
                    None => {
                        let contexts =
                            problem.data().all().into_iter().map(|i| (problem.context(i), problem.data().origin(i)));
                        LargeMdp::new(problem.model(), &contexts.collect::<Vec<_>>())?
                    }
                };
                // A plan of the large process is one of each context.
                problem.planner().count_plans(problem.len() as u64);
                let (_, point, sweeps) = self.large_mdp.insert(large).respond(&self.next)?;
                problem.planner().count_sweeps(sweeps * problem.len());
                point
            }
        };
        self.scale = self.scale.max(norm(&point));
        Ok(point)
    }

    /// Differences up to this are rounding, at the size of the feature expectations.
    pub(super) fn rounding(&self) -> f64 {
        ROUNDING * self.scale
    }

    /// Keeps the policy that was planned for the next reward, with no share of the mixture yet.
    pub(super) fn keep(&mut self, point: Vec<f64>) -> usize {
        self.rewards.push(self.next.clone());
        self.hull.keep(point)
    }

    /// A step towards the policy that was planned for the next reward, or away from the worst of the mixture; its length.
    pub(super) fn towards_or_away(&mut self, point: Vec<f64>) -> f64 {
        let (rounding, Self { hull, rewards, next, .. }) = (self.rounding(), self);
        hull.towards_or_away(point, rounding, || rewards.push(next.clone()))
    }

    /// Forgets policies without a share.
    pub(super) fn drop_unused(&mut self) {
        let used = self.hull.drop_unused();
        let mut at = used.iter();
        self.rewards.retain(|_| at.next().is_some_and(|used| *used));
    }

    /// Takes note of an upper bound of the game's value.
    pub(super) fn bound_from_above(&mut self, upper: f64) {
        self.upper = Some(self.upper.map_or(upper, |least| least.min(upper)));
    }

    /// Takes note of what the plan for the next reward says about the game over the unit ball. The reward zero is in the
    /// ball, so that no agent is sure of more than nothing.
    pub(super) fn bound_over_the_ball(&mut self, point: &[f64]) {
        let size = norm(&self.next);
        let gained =
            if size > 0.0 { (dot(&self.next, point) - dot(&self.next, self.hull.target())) / size } else { 0.0 };
        self.bound_from_above(gained.min(0.0));
    }

    /// The least upper bound of the game's value that was met.
    pub(super) fn upper(&self) -> Option<f64> {
        self.upper
    }

    /// After a step of this length: W for the next plan, and what is known now.
    pub(super) fn stepped_over_the_ball(&mut self, problem: &Problem<'_>, length: f64) -> Step {
        self.next = self.hull.towards_target();
        let gap = self.gap_over_the_ball();
        let record = Record {
            step_size: Some(length),
            demonstrations: problem.len() as u64,
            gap,
            distance: Some(self.hull.distance()),
            ..Record::default()
        };
        Step { record, finished: length == 0.0 || gap.is_some_and(|gap| self.is_rounding(gap)) }
    }

    /// How far the mixture is from the value of the game over the unit ball, at most.
    pub(super) fn gap_over_the_ball(&self) -> Option<f64> {
        self.upper.map(|upper| (upper + self.hull.distance()).max(0.0))
    }

    /// Between what the value of the game over the unit ball lies.
    pub(super) fn game_over_the_ball(&self) -> Option<GameValue> {
        // A distance of zero is a value of zero, without a sign.
        let lower = 0.0 - self.hull.distance();
        Some(GameValue {
            lower,
            // Both bounds are computed with rounding errors; they do not cross.
            upper: self.upper?.max(lower),
            rewards: Some(GameRewards::UnitBall),
        })
    }

    /// Whether a number is nothing but rounding, at the size of the feature expectations.
    pub(super) fn is_rounding(&self, x: f64) -> bool {
        x <= self.rounding()
    }

    /// The mixture as an agent; before the first policy, an agent that plans for the first reward.
    pub(super) fn agent(&self, problem: &Problem<'_>) -> Result<Agent> {
        let mapping = |reward: &Vec<f64>| problem.linear(reward);
        let drawn: Vec<(f64, &Vec<f64>)> =
            self.hull.shares().iter().copied().zip(&self.rewards).filter(|(share, _)| *share > 0.0).collect();
        let (shares, rewards) =
            if drawn.is_empty() { (vec![1.0], vec![&self.next]) } else { drawn.into_iter().unzip() };
        Ok(Agent::Mixed(Mixture::new(shares, rewards.into_iter().map(mapping).collect::<Result<_>>()?)?))
    }
}

/// Makes a learner of settings that say how an apprentice over the unit ball advances by a step.
macro_rules! apprentice {
    ($settings:ident, $steps:literal, $guarantee:literal) => {
        impl crate::learn::Learner for $settings {
            type State = super::apprenticeship::Apprentice;

            fn start(
                &self,
                problem: &crate::learn::Problem<'_>,
                from: crate::learn::Start<'_>,
            ) -> crate::error::Result<Self::State> {
                super::apprenticeship::Apprentice::start_anywhere(problem, from.initial, from.seed)
            }

            fn step(
                &self,
                state: &mut Self::State,
                problem: &crate::learn::Problem<'_>,
                _run: crate::learn::Run,
            ) -> crate::error::Result<crate::learn::Step> {
                let point = state.respond(problem, self.states)?;
                state.bound_over_the_ball(&point);
                advance(state, problem, point)
            }

            fn fits(&self, state: &Self::State, problem: &crate::learn::Problem<'_>) -> bool {
                state.fits(problem)
            }

            fn agent(
                &self,
                state: &Self::State,
                problem: &crate::learn::Problem<'_>,
            ) -> crate::error::Result<crate::agent::Agent> {
                state.agent(problem)
            }

            fn default_steps(&self, _problem: &crate::learn::Problem<'_>) -> crate::error::Result<u64> {
                Ok($steps)
            }

            fn game(&self, state: &Self::State) -> Option<crate::learn::GameValue> {
                state.game_over_the_ball()
            }

            fn guarantee(
                &self,
                _state: &Self::State,
                _problem: &crate::learn::Problem<'_>,
                _steps: u64,
            ) -> crate::error::Result<(Option<f64>, crate::learn::Guarantee)> {
                Ok((None, crate::learn::Guarantee::none($guarantee)))
            }
        }
    };
}

pub(super) use apprentice;
