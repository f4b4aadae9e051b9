//! Algorithm 1: descent on what demonstrations say about the reward. Read this file first.
//!
//! ```text
//! for t = 1, 2, …, T:
//!     observe contexts c with demonstrations μ*_c                          batch
//!     f_θ(c), the rewards as the mapping has them                          mapping, forward
//!     π_c = argmax_π f_θ(c)·μ^π_c, and its feature expectations            planner
//!     g = ∂/∂f of the objective: μ^{π_c}_c − μ*_c for the loss             objective
//!     g_t = ∂/∂θ, pulled back through the mapping                          mapping, pull back
//!     θ ← argmin over the set of α_t g_t·θ + D_ψ(θ, θ_t)                   step rule
//! return the average of the θ_t                                            average
//! ```
//!
//! The paper's PSGD and EW, evolution strategies, adaptive descent and networks are this one learner over different parts: a
//! [`ParametricMapping`], an [`Objective`] and a [`StepRule`]. Cost of a step: a plan for each demonstration of its batch.

use super::batch::Batch;
use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::Record;
use crate::agent::Agent;
use crate::error::{Error, Result};
use crate::mapping::{ParametricMapping, RewardMapping};
use crate::objective::Objective;
use crate::optim::{Number, Perturbation, Set, StepRule, dot, norm, normalise};
use crate::random::stream;
use std::borrow::Cow;

/// Where the gradient comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gradient {
    /// Pulled back through the mapping.
    PulledBack,
    /// Estimated from values at perturbed parameters.
    Estimated(Estimation),
}

/// How a gradient is estimated from values, and which steps are taken along it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimation {
    /// Where values are taken.
    pub perturbation: Perturbation,
    /// Which policies perturbed mappings are judged with.
    pub policies: Policies,
    /// The set that perturbed parameters are brought back to, if any.
    pub within: Option<Set>,
    /// Whether values are taken at θ/‖θ‖₂.
    pub unit: bool,
    /// Gradients of a linear mapping shorter than this, in the 1-norm, move nothing.
    pub indifference: f64,
    /// Whether a step is taken only if it lowers the value on its batch.
    pub only_if_better: bool,
}

/// Which policies a perturbed mapping is judged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policies {
    /// Those of the mapping that is perturbed, as in the published code.
    #[default]
    Fixed,
    /// Its own: planned for at every perturbation.
    Resolved,
}

/// Which parameters are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Averaging {
    /// The last.
    Last,
    /// The mean of θ₁ … θ_T.
    BeforeUpdate,
    /// The mean of θ₂ … θ_{T+1}.
    AfterUpdate,
    /// The mean of θ₂ … θ_{T+1} with weights 1, 2, …, T, at length one: it forgets the start.
    LinearWeights,
    /// The one of least value on its batch, per length.
    Best,
}

/// A method that is descent over a mapping, an objective and a step rule. Every type that implements it is a [`Learner`].
pub trait Descent: Sync {
    /// What is learned.
    type Mapping: ParametricMapping + Into<Agent>;
    /// How a gradient moves its parameters.
    type Rule: StepRule<<Self::Mapping as ParametricMapping>::Number>;

    /// Why no bound is claimed, where none is; see [`Guarantee::reason`].
    const WITHOUT_BOUND: &'static str = "no_theorem";

    /// The mapping before the first step; refuses settings and data that do not fit.
    fn first(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<Self::Mapping>;

    /// What is minimised.
    fn objective(&self, problem: &Problem<'_>) -> Box<dyn Objective>;

    /// How a gradient moves the parameters.
    fn rule(&self, problem: &Problem<'_>) -> Result<Self::Rule>;

    /// Which demonstrations a step looks at.
    fn batch(&self) -> Batch;

    /// Number of steps by default.
    fn default_steps(&self, problem: &Problem<'_>) -> u64;

    /// Where the gradient comes from.
    fn gradient(&self) -> Gradient {
        Gradient::PulledBack
    }

    /// Which parameters are returned.
    fn averaging(&self) -> Averaging {
        Averaging::Last
    }

    /// A theorem's bound for this run, and what it says; by default there is none, for the reason above.
    fn guarantee(
        &self,
        _state: &DescentStateOf<Self>,
        _problem: &Problem<'_>,
        _steps: u64,
    ) -> Result<(Option<f64>, Guarantee)> {
        Ok((None, Guarantee::none(Self::WITHOUT_BOUND)))
    }

    /// The settings with what was left open decided by the data.
    fn resolved_for(&self, _problem: &Problem<'_>) -> Result<Self>
    where
        Self: Clone,
    {
        Ok(self.clone())
    }
}

/// What a descent keeps.
pub type DescentStateOf<D> =
    DescentState<<D as Descent>::Mapping, <<D as Descent>::Rule as StepRule<NumberOf<D>>>::State>;

type NumberOf<D> = <<D as Descent>::Mapping as ParametricMapping>::Number;

/// What a descent keeps: the mapping as it stands, what the step rule remembers, and sums over the steps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(serialize = "S: serde::Serialize", deserialize = "S: serde::de::DeserializeOwned"))]
pub struct DescentState<M: ParametricMapping, S> {
    /// f_θ as it stands.
    pub mapping: M,
    /// What the step rule remembers.
    pub rule: S,
    /// Σ of the averaged θ with their weights, and of the weights.
    sum: Vec<f64>,
    weight: f64,
    /// The least value met on a batch, per length of θ, and the mapping that had it.
    best: Option<(f64, M)>,
    /// Σ of the values on the batches.
    regret: f64,
    /// Σ α_t and α_T.
    pub(super) step_sum: f64,
    pub(super) last_step: f64,
    /// Whether all parameters were the same at the start.
    pub(super) uniform_start: bool,
    /// Room for a gradient.
    #[serde(skip)]
    gradient: Vec<M::Number>,
}

impl<M: ParametricMapping, S> DescentState<M, S> {
    /// Adds θ to the average.
    fn collect(&mut self, weight: f64) {
        self.sum.resize(self.mapping.parameters().len(), 0.0);
        self.sum.iter_mut().zip(self.mapping.parameters()).for_each(|(sum, w)| *sum += weight * w.to_f64());
        self.weight += weight;
    }

    /// What would be returned now.
    fn returned(&self, averaging: Averaging) -> Cow<'_, M> {
        let mean: Vec<f64> = match (averaging, &self.best) {
            (Averaging::Best, Some((_, best))) => return Cow::Borrowed(best),
            (Averaging::LinearWeights, _) => {
                let mut mean = if self.weight > 0.0 { self.sum.clone() } else { numbers(&self.mapping) };
                normalise(&mut mean);
                mean
            }
            _ if self.weight > 0.0 => self.sum.iter().map(|w| w / self.weight).collect(),
            _ => return Cow::Borrowed(&self.mapping),
        };
        let mut mapping = self.mapping.clone();
        mapping.parameters_mut().iter_mut().zip(mean).for_each(|(w, x)| *w = Number::from_f64(x));
        Cow::Owned(mapping)
    }
}

impl<D: Descent> Learner for D {
    type State = DescentStateOf<D>;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<Self::State> {
        self.batch().check()?;
        let mapping = self.first(problem, from)?;
        self.objective(problem).check(problem.data())?;
        let parameters = mapping.parameters();
        Ok(DescentState {
            rule: self.rule(problem)?.start(parameters),
            uniform_start: parameters.iter().all(|w| *w == parameters[0]),
            mapping,
            sum: Vec::new(),
            weight: 0.0,
            best: None,
            regret: 0.0,
            step_sum: 0.0,
            last_step: 0.0,
            gradient: Vec::new(),
        })
    }

    fn step(&self, state: &mut Self::State, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let (data, objective, averaging) = (problem.data(), self.objective(problem), self.averaging());
        let batch = self.batch().indices(problem.len(), run.step, run.seed);
        let contexts = data.inputs(&batch);
        let (rewards, pass) = state.mapping.forward(&contexts)?;
        check_finite_after(&rewards, state.last_step)?;
        let (value, by_rewards) = objective.value_and_gradient(problem.planner(), data, &rewards, &batch)?;

        let at = Evaluated { objective: &*objective, batch: &batch, by_rewards: &by_rewards, value };
        if averaging == Averaging::Best {
            let per_length = at.per_length(&state.mapping);
            if state.best.as_ref().is_none_or(|(least, _)| per_length < *least) {
                state.best = Some((per_length, state.mapping.clone()));
            }
        }
        if averaging == Averaging::BeforeUpdate {
            state.collect(1.0);
        }
        let rule = self.rule(problem)?;
        let taken = match self.gradient() {
            Gradient::PulledBack => {
                state.mapping.pull_back(&contexts, &pass, &by_rewards, &mut state.gradient)?;
                let DescentState { mapping, gradient, rule: remembered, .. } = state;
                rule.step(remembered, mapping.parameters_mut(), gradient, run.time())?
            }
            Gradient::Estimated(how) => how.step(&rule, state, &at, problem, run)?,
        };
        state.mapping.absorb(&pass, batch.len());
        match averaging {
            Averaging::AfterUpdate | Averaging::Best => state.collect(1.0),
            Averaging::LinearWeights => state.collect(run.step as f64),
            Averaging::Last | Averaging::BeforeUpdate => {}
        }
        check_finite_after(state.mapping.parameters(), taken)?;
        (state.step_sum, state.last_step) = (state.step_sum + taken, taken);
        state.regret += value;
        Ok(Step::from(Record {
            batch_loss: Some(value),
            step_size: Some(taken),
            demonstrations: self.batch().seen(problem.len(), run.step),
            regret: state.mapping.is_linear().then_some(state.regret),
            ..Record::default()
        }))
    }

    fn agent(&self, state: &Self::State, _problem: &Problem<'_>) -> Result<Agent> {
        Ok(state.returned(self.averaging()).into_owned().into())
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(Descent::default_steps(self, problem))
    }

    fn steps_per_pass(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(self.batch().steps_per_pass(problem.len()))
    }

    fn demonstrations_per_step(&self, problem: &Problem<'_>) -> u64 {
        self.batch().seen(problem.len(), 1)
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self>
    where
        Self: Clone,
    {
        Descent::resolved_for(self, problem)
    }

    fn fits(&self, state: &Self::State, problem: &Problem<'_>) -> bool {
        let (mapping, n) = (&state.mapping, state.mapping.parameters().len());
        let shape = (problem.data().dimension(), problem.n_features());
        (mapping.dimension(), mapping.n_features()) == shape
            && self.rule(problem).is_ok_and(|rule| rule.fits(&state.rule, n))
            && (state.sum.is_empty() || state.sum.len() == n)
            && state.best.as_ref().is_none_or(|(_, best)| {
                (best.dimension(), best.n_features(), best.parameters().len()) == (shape.0, shape.1, n)
            })
    }

    fn mapping(&self, state: &Self::State) -> Option<Vec<f64>> {
        state.returned(self.averaging()).as_matrix().map(<[f64]>::to_vec)
    }

    fn last_iterate(&self, state: &Self::State) -> Option<Vec<f64>> {
        state.mapping.as_matrix().filter(|_| state.weight > 0.0).map(<[f64]>::to_vec)
    }

    fn has_loss(&self) -> bool {
        true
    }

    fn loss(&self, state: &Self::State, problem: &Problem<'_>) -> Result<Option<f64>> {
        problem.unit_loss_of(&*state.returned(self.averaging()))
    }

    fn guarantee(&self, state: &Self::State, problem: &Problem<'_>, steps: u64) -> Result<(Option<f64>, Guarantee)> {
        Descent::guarantee(self, state, problem, steps)
    }
}

/// The objective on the batch of a step.
struct Evaluated<'s> {
    objective: &'s dyn Objective,
    batch: &'s [usize],
    by_rewards: &'s [f64],
    value: f64,
}

impl Evaluated<'_> {
    /// The value per length of the parameters.
    fn per_length<M: ParametricMapping>(&self, mapping: &M) -> f64 {
        self.value / norm(&numbers(mapping)).max(f64::MIN_POSITIVE)
    }
}

impl Estimation {
    /// A step along an estimated gradient; the length of the step.
    fn step<M: ParametricMapping, R: StepRule<M::Number>>(
        self,
        rule: &R,
        state: &mut DescentState<M, R::State>,
        at: &Evaluated<'_>,
        problem: &Problem<'_>,
        run: Run,
    ) -> Result<f64> {
        let own = if state.mapping.is_linear() {
            // The objective with its policies held fixed is linear as well: this is its gradient everywhere.
            let contexts = problem.data().inputs(at.batch);
            let (_, pass) = state.mapping.forward(&contexts)?;
            state.mapping.pull_back(&contexts, &pass, at.by_rewards, &mut state.gradient)?;
            state.gradient.iter().map(|g| g.to_f64()).collect()
        } else {
            Vec::new()
        };
        let before = state.mapping.clone();
        let indifferent = before.is_linear() && own.iter().map(|g: &f64| g.abs()).sum::<f64>() < self.indifference;
        let gradient = if indifferent { vec![0.0; own.len()] } else { self.estimate(&before, at, &own, problem, run)? };
        state.gradient = gradient.into_iter().map(Number::from_f64).collect();
        let taken = rule.step(&mut state.rule, state.mapping.parameters_mut(), &mut state.gradient, run.time())?;
        let worse = || -> Result<bool> {
            let (value, _) = problem.objective(at.objective, &state.mapping, at.batch)?;
            Ok(!(Evaluated { value, ..*at }.per_length(&state.mapping) < at.per_length(&before)))
        };
        if indifferent || (self.only_if_better && worse()?) {
            state.mapping = before;
        }
        Ok(taken)
    }

    /// The gradient by θ from values at perturbed parameters; `own` is the one that is pulled back, for linear mappings.
    fn estimate<M: ParametricMapping>(
        self,
        mapping: &M,
        at: &Evaluated<'_>,
        own: &[f64],
        problem: &Problem<'_>,
        run: Run,
    ) -> Result<Vec<f64>> {
        let contexts = problem.data().inputs(at.batch);
        let rewards = |point: &[M::Number]| -> Result<Vec<f64>> {
            let mut moved = mapping.clone();
            moved.parameters_mut().copy_from_slice(point);
            Ok(moved.forward(&contexts)?.0)
        };
        let values = |points: Vec<Vec<M::Number>>| -> Result<Vec<f64>> {
            let doubles = |point: &Vec<M::Number>| point.iter().map(|w| w.to_f64()).collect::<Vec<f64>>();
            let values: Vec<f64> = match self.policies {
                Policies::Fixed if mapping.is_linear() => points.iter().map(|w| dot(&doubles(w), own)).collect(),
                Policies::Fixed => {
                    points.iter().map(|w| Ok(dot(&rewards(w)?, at.by_rewards))).collect::<Result<_>>()?
                }
                Policies::Resolved => {
                    let choices: Vec<Vec<f64>> = points.iter().map(|w| rewards(w)).collect::<Result<_>>()?;
                    at.objective.values(problem.planner(), problem.data(), &choices, at.batch)?
                }
            };
            let scale = |w: &Vec<M::Number>| match self.unit {
                true => 1.0 / norm(&doubles(w)).max(f64::MIN_POSITIVE),
                false => 1.0,
            };
            Ok(points.iter().zip(values).map(|(w, value)| scale(w) * value).collect())
        };
        let within = |point: &mut [M::Number]| {
            if let Some(set) = self.within {
                let mut doubles: Vec<f64> = point.iter().map(|w| w.to_f64()).collect();
                set.project(&mut doubles);
                point.iter_mut().zip(doubles).for_each(|(w, x)| *w = Number::from_f64(x));
            }
        };
        let mut rng = stream(run.seed, "perturbation", run.step);
        self.perturbation.estimate(mapping.parameters(), &mut rng, within, values)
    }
}

/// θ in double precision.
fn numbers<M: ParametricMapping>(mapping: &M) -> Vec<f64> {
    mapping.parameters().iter().map(|w| w.to_f64()).collect()
}

/// Refuses what is left after steps that were too long.
fn check_finite_after<N: Number>(numbers: &[N], step: f64) -> Result<()> {
    if numbers.iter().all(|x| x.to_f64().is_finite()) {
        return Ok(());
    }
    let reason = "learning diverged; choose shorter steps or a largest gradient";
    Err(Error::InvalidSetting { name: "step size", value: step.to_string(), reason })
}
