//! Multiplicative weights for apprenticeship learning (Syed & Schapire 2008, algorithm MWAL).
//!
//! The game is over rewards w in the simplex of n features: all dk where no weight is negative, or 2dk where each feature stands
//! beside its negative, which is the ball ‖W‖₁ ≤ 1. With x_t = M_t − μ_E for the plan of w_t, |x_t| ≤ R in every entry:
//!
//! ```text
//! w_{t+1} ∝ w_t·β^{G_t},   G_t = (x_t/R + 1)/2 ∈ [0, 1],   β = 1/(1 + η),   η = √(2 log n/T),        R = 2·max|φ|·max‖c‖∞/(1 − γ).
//! ```
//!
//! All T policies have equal shares. By Freund & Schapire's bound for Hedge, for every η and after every number t of steps,
//!
//! ```text
//! min over w of w·(μ̄ − μ_E)  ≥  v* − 2R(η/2 + (1 + 1/η)·log(n)/t),        v* = max over mixtures of the left-hand side,
//! ```
//!
//! which for η as above is their 2R(√(2 log n/T) + log(n)/T). Where no weight of the true reward is negative and v* > 0 the
//! agent does better than the expert. Cost: a plan in every context per step.

use super::apprenticeship::{Apprentice, States};
use crate::agent::Agent;
use crate::error::{Error, Result, check_positive};
use crate::learn::{GameRewards, GameValue, Guarantee, Learner, Problem, Record, Run, Start, Step};
use crate::optim::dot;

/// Settings of multiplicative weights.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mwal {
    /// How the large MDP is planned in.
    pub states: States,
    /// Whether weights of the true reward may be negative.
    pub signed: bool,
    /// Factor on the theory's η; the bound is printed for what is used.
    pub step_multiplier: f64,
}

impl Default for Mwal {
    fn default() -> Self {
        Self { states: States::default(), signed: true, step_multiplier: 1.0 }
    }
}

/// What multiplicative weights keep.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    apprentice: Apprentice,
    /// log w up to a constant: of the features, then of their negatives.
    logits: Vec<f64>,
    /// η.
    rate: f64,
    /// The largest |entry| of x_t met.
    largest: f64,
}

impl Mwal {
    /// n.
    fn n_weights(&self, problem: &Problem<'_>) -> usize {
        problem.n_parameters() * if self.signed { 2 } else { 1 }
    }
}

/// R.
fn range(problem: &Problem<'_>) -> Result<f64> {
    Ok(2.0 * problem.entry_bound()?)
}

impl State {
    /// The reward that the weights stand for.
    fn reward(&self) -> Vec<f64> {
        let most = self.logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = self.logits.iter().map(|x| (x - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        let (plus, minus) = weights.split_at(self.apprentice.hull.target().len());
        let minus = minus.iter().copied().chain(std::iter::repeat(0.0));
        plus.iter().zip(minus).map(|(plus, minus)| (plus - minus) / total).collect()
    }

    /// min over w of w·(μ̄ − μ_E).
    fn least_gain(&self, own: &Mwal) -> f64 {
        let gain = |behind: f64| if own.signed { -behind.abs() } else { -behind };
        self.apprentice.hull.towards_target().into_iter().map(gain).fold(f64::INFINITY, f64::min)
    }
}

impl Learner for Mwal {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        check_positive("step multiplier", self.step_multiplier)?;
        if from.initial.is_some() {
            let reason = "multiplicative weights start from equal weights; leave it out";
            return Err(Error::InvalidSetting { name: "from.initial mapping", value: "given".into(), reason });
        }
        let mut state = State {
            apprentice: Apprentice::start(problem, Vec::new())?,
            logits: vec![0.0; self.n_weights(problem)],
            rate: 0.0,
            largest: 0.0,
        };
        state.apprentice.next = state.reward();
        Ok(state)
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let n = self.n_weights(problem) as f64;
        state.rate = self.step_multiplier * (2.0 * n.ln() / run.last as f64).sqrt();
        let point = state.apprentice.respond(problem, self.states)?;
        let ahead: Vec<f64> =
            point.iter().zip(state.apprentice.hull.target()).map(|(new, expert)| new - expert).collect();
        state.largest = ahead.iter().fold(state.largest, |most, x| most.max(x.abs()));
        state.apprentice.bound_from_above(dot(&state.apprentice.next, &ahead));
        let range = range(problem)?;
        // log β · G, without the half that is common to all features.
        let scale = if range > 0.0 { 0.5 * state.rate.ln_1p() / range } else { 0.0 };
        let (plus, minus) = state.logits.split_at_mut(ahead.len());
        plus.iter_mut().zip(&ahead).for_each(|(logit, x)| *logit -= scale * x);
        minus.iter_mut().zip(&ahead).for_each(|(logit, x)| *logit += scale * x);
        state.apprentice.keep(point);
        let shares = vec![1.0 / run.step as f64; state.apprentice.hull.corners().len()];
        state.apprentice.hull.mix(shares);
        state.apprentice.next = state.reward();
        let gap = state.apprentice.upper().map(|upper| (upper - state.least_gain(self)).max(0.0));
        Ok(Step {
            record: Record {
                step_size: Some(state.rate),
                demonstrations: problem.len() as u64,
                gap,
                distance: Some(state.apprentice.hull.distance()),
                ..Record::default()
            },
            finished: gap.is_some_and(|gap| state.apprentice.is_rounding(gap)),
        })
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        // One logit for each entry of the mapping, or two where weights may be negative.
        let n = problem.n_parameters();
        state.apprentice.fits(problem) && [n, 2 * n].contains(&state.logits.len())
    }

    fn agent(&self, state: &State, problem: &Problem<'_>) -> Result<Agent> {
        state.apprentice.agent(problem)
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(500)
    }

    fn game(&self, state: &State) -> Option<GameValue> {
        let lower = state.least_gain(self);
        let rewards = if self.signed { GameRewards::UnitCrossPolytope } else { GameRewards::Simplex };
        Some(GameValue { lower, upper: state.apprentice.upper()?.max(lower), rewards: Some(rewards) })
    }

    fn guarantee(&self, state: &State, problem: &Problem<'_>, steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let range = range(problem)?;
        if steps == 0 || state.rate == 0.0 {
            return Ok((None, Guarantee::none("no_step_or_one_reward")));
        }
        if state.largest > range {
            return Ok((None, Guarantee::none("beyond_features")));
        }
        let log = (self.n_weights(problem) as f64).ln();
        let bound = 2.0 * range * (0.5 * state.rate + (1.0 + 1.0 / state.rate) * log / steps as f64);
        Ok((Some(bound), Guarantee::holds("worst_gain")))
    }
}
