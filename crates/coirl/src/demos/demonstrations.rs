//! What there is to learn from: contexts with what was seen in each, read once. Data only; nothing here plans.

use super::{DemonstratedActions, Demonstration, Estimates, Estimator, Evidence, Reference, Trajectory};
use crate::contextual::{Origin, Query};
use crate::error::{Error, Result, check_length};
use crate::model::digest::feed_numbers;
use crate::model::{Cmdp, Context, ContextSpace, Criterion, Dynamics};
use crate::plan::longest_expected_time;
use rayon::prelude::*;

/// Contexts with their demonstrations: μ* or its estimate, trajectories, and where each starts. Or contexts alone, about which an
/// expert can be asked.
#[derive(Debug, Clone)]
pub struct Demonstrations {
    /// What the dynamics follow.
    contexts: Vec<Context>,
    /// What the mapping is given in place of the contexts, where that is something else.
    inputs: Option<Vec<Context>>,
    origins: Vec<Origin>,
    /// Where the agent that is compared with a demonstration starts, where that is not its origin: Σ γᵗ (e(s_t) − γ P(· | s_t, a_t)),
    /// see [`Estimator::Decisions`].
    signed_starts: Vec<Option<Vec<f64>>>,
    /// μ* of every context; empty where only an expert knows.
    expectations: Vec<Vec<f64>>,
    /// Trajectories of every demonstration; none where only its feature expectations are known.
    trajectories: Vec<Vec<Trajectory>>,
    actions: DemonstratedActions,
    exact: bool,
    /// Of every demonstration, the most that an estimated feature expectation may be off on average.
    bias_bounds: Vec<f64>,
    /// How feature expectations were read off trajectories, where that was chosen.
    estimator: Option<Estimator>,
}

impl Demonstrations {
    /// Reads demonstrations, with feature expectations estimated where only trajectories are known. Without an estimator the default one
    /// is taken, and learners that can do without feature expectations look at single actions instead.
    pub fn new<'e>(
        model: &Cmdp,
        demonstrations: &[Demonstration],
        estimator: impl Into<Option<&'e Estimator>>,
        reference: Reference,
    ) -> Result<Self> {
        let estimator = estimator.into();
        let estimates = Estimates::new(model, estimator.cloned().unwrap_or_default(), reference)?;
        let estimated: Vec<_> =
            demonstrations.par_iter().map(|demo| estimates.estimate(demo)).collect::<Result<_>>()?;
        let mut data =
            Self::without_demonstrations(demonstrations.iter().map(|demo| demo.context().clone()).collect())?;
        data.origins = demonstrations.iter().map(|demo| demo.origin().clone()).collect();
        data.trajectories = demonstrations.iter().map(trajectories_of).collect();
        data.actions = DemonstratedActions::count(model.pairs(), &data.trajectories)?;
        data.exact = estimated.iter().all(|e| e.standard_error.as_ref().is_some_and(|s| s.iter().all(|&x| x == 0.0)));
        data.bias_bounds = estimated.iter().map(|e| e.bias_bound).collect();
        data.estimator = estimator.cloned();
        (data.expectations, data.signed_starts) =
            estimated.into_iter().map(|e| (e.feature_expectations, e.signed_start)).unzip();
        Ok(data)
    }

    /// Contexts about which an expert can be asked; of one length, and at least one.
    pub fn without_demonstrations(contexts: Vec<Context>) -> Result<Self> {
        let Some(first) = contexts.first() else {
            return Err(Error::shape("demonstrations", "at least 1", 0));
        };
        let (n, d) = (contexts.len(), first.values().len());
        contexts.iter().try_for_each(|context| check_length("context", d, context.values().len()))?;
        Ok(Self {
            contexts,
            inputs: None,
            origins: vec![Origin::Model; n],
            signed_starts: vec![None; n],
            expectations: Vec::new(),
            trajectories: vec![Vec::new(); n],
            actions: DemonstratedActions::none(n),
            exact: true,
            bias_bounds: vec![0.0; n],
            estimator: None,
        })
    }

    /// These demonstrations for mappings that do not see the context: f is one vector of weights for all, while the dynamics
    /// still follow the context.
    pub fn without_context(mut self) -> Result<Self> {
        self.inputs = Some(vec![ContextSpace::Any.context([1.0])?; self.len()]);
        Ok(self)
    }

    /// These demonstrations for mappings with weights that everybody has: a constant follows what the mapping was given.
    pub fn with_constant(mut self) -> Result<Self> {
        let longer = |i| ContextSpace::Any.context([self.input(i).values(), &[1.0]].concat());
        self.inputs = Some((0..self.len()).map(longer).collect::<Result<_>>()?);
        Ok(self)
    }

    /// Some of the demonstrations, in this order; one may be taken more than once.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        if let Some(index) = indices.iter().find(|&&i| i >= self.len()) {
            return Err(Error::shape("demonstration", format!("below {}", self.len()), index));
        }
        fn of<T: Clone>(all: &[T], indices: &[usize]) -> Vec<T> {
            indices.iter().map(|&i| all[i].clone()).collect()
        }
        let mut selected = Self::without_demonstrations(of(&self.contexts, indices))?;
        selected.inputs = self.inputs.as_ref().map(|inputs| of(inputs, indices));
        selected.origins = of(&self.origins, indices);
        selected.signed_starts = of(&self.signed_starts, indices);
        selected.trajectories = of(&self.trajectories, indices);
        selected.exact = self.exact;
        selected.bias_bounds = of(&self.bias_bounds, indices);
        selected.estimator.clone_from(&self.estimator);
        selected.actions = self.actions.select(indices);
        if self.has_expectations() {
            selected.expectations = of(&self.expectations, indices);
        }
        Ok(selected)
    }

    /// One demonstration per path; where there are fewer than three paths, in so many stretches of each.
    /// Feature expectations are not kept.
    pub(crate) fn in_pieces(&self, model: &Cmdp, stretches: usize) -> Result<Self> {
        let paths: usize = self.trajectories.iter().map(Vec::len).sum();
        let stretches = if paths < 3 { stretches } else { 1 };
        let (mut owners, mut pieces) = (Vec::new(), Vec::new());
        for (i, own) in self.trajectories.iter().enumerate() {
            for piece in own.iter().flat_map(|path| path.in_stretches(stretches)) {
                owners.push(i);
                pieces.push(vec![piece]);
            }
        }
        let mut found = Self::without_demonstrations(owners.iter().map(|&i| self.contexts[i].clone()).collect())?;
        found.inputs = self.inputs.as_ref().map(|inputs| owners.iter().map(|&i| inputs[i].clone()).collect());
        found.exact = false;
        found.actions = DemonstratedActions::count(model.pairs(), &pieces)?;
        found.trajectories = pieces;
        Ok(found)
    }

    /// Number of contexts, with or without their demonstrations.
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    /// Never: there is at least one context.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Every index.
    pub fn all(&self) -> Vec<usize> {
        (0..self.len()).collect()
    }

    /// The contexts.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// The numbers of all contexts, row by row.
    pub fn context_values(&self) -> Vec<f64> {
        self.contexts.iter().flat_map(|context| context.values()).copied().collect()
    }

    /// What the mapping is given for a demonstration: the context, unless other inputs were chosen.
    pub fn input(&self, index: usize) -> &Context {
        self.inputs.as_ref().map_or(&self.contexts[index], |inputs| &inputs[index])
    }

    /// What the mapping is given for some demonstrations.
    pub fn inputs(&self, indices: &[usize]) -> Vec<&Context> {
        indices.iter().map(|&i| self.input(i)).collect()
    }

    /// Length d of what the mapping is given.
    pub fn dimension(&self) -> usize {
        self.input(0).values().len()
    }

    /// Where a demonstration starts.
    pub fn origin(&self, index: usize) -> &Origin {
        &self.origins[index]
    }

    /// What is asked of an agent to compare it with demonstrations.
    pub fn queries(&self, indices: &[usize]) -> Vec<Query<'_>> {
        let query = |&i: &usize| Query {
            context: &self.contexts[i],
            origin: &self.origins[i],
            signed_start: self.signed_starts[i].as_deref(),
        };
        indices.iter().map(query).collect()
    }

    /// Whether demonstrations are at hand, not only an expert.
    pub fn has_expectations(&self) -> bool {
        !self.expectations.is_empty()
    }

    /// μ* of a context.
    pub fn expectations(&self, index: usize) -> Result<&[f64]> {
        self.expectations.get(index).map(Vec::as_slice).ok_or_else(|| Error::InvalidSetting {
            name: "method",
            value: "from demonstrations".into(),
            reason: "there are no demonstrations, only an expert; choose one of the interactive methods",
        })
    }

    /// What was seen in a context, step by step; nothing where only feature expectations are known.
    pub fn trajectories(&self, index: usize) -> &[Trajectory] {
        &self.trajectories[index]
    }

    /// Which actions were taken where; none where only feature expectations are known.
    pub fn actions(&self) -> &DemonstratedActions {
        &self.actions
    }

    /// Whether single actions are known of every demonstration and no estimator of feature expectations was chosen: then actions are what
    /// is best learned from.
    pub fn prefer_actions(&self) -> bool {
        self.estimator.is_none() && self.trajectories.iter().all(|own| !own.is_empty())
    }

    /// Whether an estimator of feature expectations was chosen, rather than left to the default.
    pub fn estimator_chosen(&self) -> bool {
        self.estimator.is_some()
    }

    /// Whether every demonstration is exact, so that the lemmas hold.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// How feature expectations are read off trajectories, where that was chosen.
    pub fn estimator(&self) -> Option<&Estimator> {
        self.estimator.as_ref()
    }

    /// A bound on the bias of every estimated feature expectation.
    pub fn bias_bound(&self) -> f64 {
        self.bias_bounds.iter().copied().fold(0.0, f64::max)
    }

    /// A bound on the bias of the feature expectations of each demonstration: of given ones, zero.
    pub fn bias_bounds(&self) -> &[f64] {
        &self.bias_bounds
    }

    /// Adds `scale · c ⊙ (μ − μ*)`, c being what the mapping is given, μ the agent's and μ* the expert's.
    pub fn add_difference(&self, index: usize, agent: &[f64], expert: &[f64], scale: f64, sum: &mut [f64]) {
        for (x, row) in self.input(index).values().iter().zip(sum.chunks_exact_mut(agent.len().max(1))) {
            for ((entry, mu), star) in row.iter_mut().zip(agent).zip(expert) {
                *entry += scale * x * (mu - star);
            }
        }
    }

    /// An upper bound on Σ γᵗ (or, for the average criterion, one): what 1/(1 − γ) is to a discounted process.
    pub fn horizon(&self, model: &Cmdp) -> Result<f64> {
        match model.criterion() {
            Criterion::Discounted { discount } => Ok(1.0 / (1.0 - discount)),
            Criterion::FiniteHorizon { steps, discount } if discount < 1.0 => {
                Ok((1.0 - discount.powi(steps as i32)) / (1.0 - discount))
            }
            Criterion::FiniteHorizon { steps, .. } => Ok(steps as f64),
            Criterion::Average => Ok(1.0),
            Criterion::TotalReward => {
                let n = if matches!(model.dynamics(), Dynamics::Shared(_)) { 1 } else { self.len() };
                let time =
                    |i: usize| longest_expected_time(self.origins[i].of(model.mdp(&self.contexts[i])?)?.kernel());
                (0..n).try_fold(1.0, |most: f64, i| Ok(most.max(time(i)?)))
            }
        }
    }

    /// max |φ| · max ‖c‖∞ · horizon over the contexts at hand: a bound on every |entry of c ⊙ μ|. At most the paper's 1/(1 − γ) for
    /// features in [0, 1] and contexts on the simplex.
    pub fn entry_bound(&self, model: &Cmdp) -> Result<f64> {
        let size = |c: &Context| c.values().iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        Ok(model.features().max_abs() * self.largest_input(size) * self.horizon(model)?)
    }

    /// max |φ| · sup ‖c‖∞ · horizon over the contexts that the model declares: a bound on every |entry of c ⊙ μ| that is known before any
    /// context is seen. One on the simplex, the largest bound of a box; of contexts that can be any vector only those at hand are known,
    /// and it is [`entry_bound`](Self::entry_bound).
    pub fn declared_entry_bound(&self, model: &Cmdp) -> Result<f64> {
        let largest = match (&self.inputs, model.context_space()) {
            (None, ContextSpace::Simplex { .. }) => 1.0,
            (None, ContextSpace::Box { lower, upper }) => {
                lower.iter().chain(upper).fold(0.0, |most: f64, bound| most.max(bound.abs()))
            }
            (Some(_), _) | (None, ContextSpace::Any) => return self.entry_bound(model),
        };
        Ok(model.features().max_abs() * largest * self.horizon(model)?)
    }

    /// max |φ| · k · max ‖c‖₁ · horizon: a bound on ‖c ⊙ μ‖₁. The paper's k/(1 − γ).
    pub fn sum_bound(&self, model: &Cmdp) -> Result<f64> {
        let size = |c: &Context| c.values().iter().map(|x| x.abs()).sum::<f64>();
        let largest = self.largest_input(size);
        Ok(model.features().max_abs() * model.n_features() as f64 * largest * self.horizon(model)?)
    }

    fn largest_input(&self, size: impl Fn(&Context) -> f64) -> f64 {
        (0..self.len()).map(|i| size(self.input(i))).fold(0.0, f64::max)
    }

    /// Hands everything that a result depends on to `sink`, in a fixed order and form.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        for (i, context) in self.contexts.iter().enumerate() {
            feed_numbers(context.values(), sink);
            if self.input(i) != context {
                feed_numbers(self.input(i).values(), sink);
            }
            if let Some(start) = &self.signed_starts[i] {
                feed_numbers(start, sink);
            }
            match &self.origins[i] {
                Origin::Model => sink(b"model"),
                Origin::States(states) => states.iter().for_each(|state| sink(&state.0.to_le_bytes())),
            }
            if let Some(mu) = self.expectations.get(i) {
                feed_numbers(mu, sink);
            }
            for trajectory in &self.trajectories[i] {
                sink(&(trajectory.actions.len() as u64).to_le_bytes());
                trajectory.states.iter().for_each(|state| sink(&state.0.to_le_bytes()));
                trajectory.actions.iter().for_each(|action| sink(&action.0.to_le_bytes()));
            }
        }
    }
}

fn trajectories_of(demonstration: &Demonstration) -> Vec<Trajectory> {
    match demonstration.evidence() {
        Evidence::FeatureExpectations(_) => Vec::new(),
        Evidence::Trajectories(trajectories) => trajectories.clone(),
    }
}
