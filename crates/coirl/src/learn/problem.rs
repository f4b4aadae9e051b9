//! A problem to learn from: three parts that know nothing of each other, side by side.
//!
//! | part | what it is |
//! |---|---|
//! | [`Demonstrations`] | contexts and what was seen in each |
//! | [`ContextualPlanner`] | the model, and plans for rewards in its contexts |
//! | [`Expert`] | who can be asked; the record, where nobody can |
//!
//! For a linear mapping W, flattened row by row, the loss of the paper and its subgradient are at hand here:
//! Loss(W) = W·g(W) with g(W) = mean of c ⊙ (μ^{π(W)}_c − μ*_c).

use crate::agent::{Agent, Predictions};
use crate::contextual::{ContextualPlanner, Response};
use crate::demos::{Answer, Demonstrations, Estimator, Expert, RecordedExpert, Reference, Train, Validation};
use crate::error::{Error, Result, check_length};
use crate::mapping::{LinearMapping, ParametricMapping};
use crate::model::digest::sha256;
use crate::model::{Cmdp, Context, Mdp, StateId};
use crate::objective::{Loss, Objective};
use std::sync::OnceLock;

/// Feature expectations closer than this are the same for a recorded expert.
const RECORDED_TOLERANCE: f64 = 1e-9;

/// A model with demonstrations, or with an expert to ask about a sequence of contexts.
pub struct Problem<'a> {
    data: Demonstrations,
    planner: ContextualPlanner<'a>,
    expert: Option<&'a dyn Expert>,
    /// What is asked for at every step and costs a look at all demonstrations.
    horizon: OnceLock<f64>,
    entry_bound: OnceLock<f64>,
    declared_entry_bound: OnceLock<f64>,
}

/// The loss of a linear mapping on some demonstrations.
#[derive(Debug, Clone, PartialEq)]
pub struct LossValue {
    /// Loss(W).
    pub value: f64,
    /// g(W), flattened as W.
    pub subgradient: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// From demonstrations, with feature expectations estimated where only trajectories are known. `None` for the default estimator:
    /// learners that can do without feature expectations then look at single actions.
    pub fn new<'e>(model: &'a Cmdp, train: &Train, estimator: impl Into<Option<&'e Estimator>>) -> Result<Self> {
        Self::with_reference(model, train, estimator, Reference::Uniform)
    }

    /// The problem that validation demonstrations pose, for early stopping.
    pub fn validation<'e>(
        model: &'a Cmdp,
        validation: &Validation,
        estimator: impl Into<Option<&'e Estimator>>,
    ) -> Result<Self> {
        let data = Demonstrations::new(model, validation.demonstrations(), estimator, Reference::Uniform)?;
        Ok(Self::over(model, data))
    }

    /// From demonstrations, with a reference policy for the control variate.
    pub fn with_reference<'e>(
        model: &'a Cmdp,
        train: &Train,
        estimator: impl Into<Option<&'e Estimator>>,
        reference: Reference,
    ) -> Result<Self> {
        Ok(Self::over(model, Demonstrations::new(model, train.demonstrations(), estimator, reference)?))
    }

    /// A sequence of contexts about which an expert can be asked; for the interactive methods.
    pub fn interactive(model: &'a Cmdp, contexts: Vec<Context>, expert: &'a dyn Expert) -> Result<Self> {
        Ok(Self::over(model, Demonstrations::without_demonstrations(contexts)?).with_expert(expert))
    }

    /// From data that were read before.
    pub fn over(model: &'a Cmdp, data: Demonstrations) -> Self {
        let planner = ContextualPlanner::new(model);
        let [horizon, entry_bound, declared_entry_bound] = [const { OnceLock::new() }; 3];
        Self { data, planner, expert: None, horizon, entry_bound, declared_entry_bound }
    }

    /// With an expert who judges instead of the record.
    pub fn with_expert(self, expert: &'a dyn Expert) -> Self {
        Self { expert: Some(expert), ..self }
    }

    /// With another planner for the same model, as on another back end.
    pub fn with_planner(self, planner: ContextualPlanner<'a>) -> Self {
        Self { planner, ..self }
    }

    /// For mappings that do not see the context; see [`Demonstrations::without_context`].
    pub fn without_context(self) -> Result<Self> {
        let [entry_bound, declared_entry_bound] = [const { OnceLock::new() }; 2];
        Ok(Self { data: self.data.without_context()?, entry_bound, declared_entry_bound, ..self })
    }

    /// For mappings with weights that everybody has; see [`Demonstrations::with_constant`].
    pub fn with_constant(self) -> Result<Self> {
        let [entry_bound, declared_entry_bound] = [const { OnceLock::new() }; 2];
        Ok(Self { data: self.data.with_constant()?, entry_bound, declared_entry_bound, ..self })
    }

    /// Planned from scratch each time; see [`ContextualPlanner::without_memory`].
    pub fn without_memory(self) -> Self {
        Self { planner: self.planner.without_memory(), ..self }
    }

    /// Some of the demonstrations, in this order, with a planner of their own; one may be taken more than once.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        Ok(Self { expert: self.expert, ..Self::over(self.model(), self.data.select(indices)?) })
    }

    /// The demonstrations.
    pub fn data(&self) -> &Demonstrations {
        &self.data
    }

    /// The planner.
    pub fn planner(&self) -> &ContextualPlanner<'a> {
        &self.planner
    }

    /// The model.
    pub fn model(&self) -> &'a Cmdp {
        self.planner.model()
    }

    /// Number of contexts, with or without their demonstrations.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Never: a problem has at least one context.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Number k of features.
    pub fn n_features(&self) -> usize {
        self.model().n_features()
    }

    /// Number dk of parameters of a linear mapping.
    pub fn n_parameters(&self) -> usize {
        self.data.dimension() * self.n_features()
    }

    /// A context.
    pub fn context(&self, index: usize) -> &Context {
        &self.data.contexts()[index]
    }

    /// The process of a context, started where its demonstration starts.
    pub fn mdp(&self, index: usize) -> Result<Mdp<'a>> {
        self.data.origin(index).of(self.model().mdp(self.context(index))?)
    }

    /// Whether somebody can be asked, rather than the record.
    pub fn has_expert(&self) -> bool {
        self.expert.is_some()
    }

    /// Who can judge single actions.
    pub fn expert(&self) -> Result<&'a dyn Expert> {
        self.expert.ok_or(Error::InvalidSetting {
            name: "expert",
            value: "none".into(),
            reason: "this method asks about single actions; give an expert, or a true mapping to simulate one",
        })
    }

    /// Asks about an agent in a context: the expert, or the record where there is none.
    pub fn ask(&self, index: usize, agent: &[f64]) -> Result<Answer> {
        match self.expert {
            Some(expert) => expert.answer(index as u64, self.context(index), &self.mdp(index)?, agent),
            None => Ok(RecordedExpert::judge(self.data.expectations(index)?, agent, RECORDED_TOLERANCE)),
        }
    }

    /// A linear mapping with these parameters.
    pub fn linear(&self, parameters: &[f64]) -> Result<LinearMapping> {
        LinearMapping::new(self.data.dimension(), self.n_features(), parameters.to_vec())
    }

    /// What a linear mapping's agent does in some contexts.
    pub fn best_responses(&self, mapping: &[f64], indices: &[usize]) -> Result<Vec<Response>> {
        let queries: Vec<(&[f64], usize)> = indices.iter().map(|&i| (mapping, i)).collect();
        self.best_responses_of_each(&queries)
    }

    /// What the agents of several linear mappings do, each in a context, planned together.
    pub fn best_responses_of_each(&self, agents: &[(&[f64], usize)]) -> Result<Vec<Response>> {
        let k = self.n_features();
        let mut weights = vec![0.0; agents.len() * k];
        for (&(mapping, i), own) in agents.iter().zip(weights.chunks_exact_mut(k)) {
            check_length("mapping", self.n_parameters(), mapping.len())?;
            for (x, row) in self.data.input(i).values().iter().zip(mapping.chunks_exact(k)) {
                own.iter_mut().zip(row).for_each(|(sum, w)| *sum += x * w);
            }
        }
        let indices: Vec<usize> = agents.iter().map(|&(_, i)| i).collect();
        self.planner.best_responses(&self.data.queries(&indices), &weights)
    }

    /// What a linear mapping's agent does in one context.
    pub fn best_response(&self, mapping: &[f64], index: usize) -> Result<Response> {
        self.best_responses(mapping, &[index])?.pop().ok_or_else(|| Error::shape("plans", "1", 0))
    }

    /// An objective and its gradient by the parameters of a mapping on some demonstrations.
    pub fn objective<M: ParametricMapping>(
        &self,
        objective: &dyn Objective,
        mapping: &M,
        indices: &[usize],
    ) -> Result<(f64, Vec<M::Number>)> {
        let inputs = self.data.inputs(indices);
        let (weights, pass) = mapping.forward(&inputs)?;
        let (value, by_weights) = objective.value_and_gradient(&self.planner, &self.data, &weights, indices)?;
        let mut gradient = Vec::new();
        mapping.pull_back(&inputs, &pass, &by_weights, &mut gradient)?;
        Ok((value, gradient))
    }

    /// Loss and subgradient of a linear mapping on some demonstrations.
    pub fn loss(&self, mapping: &[f64], indices: &[usize]) -> Result<LossValue> {
        let (value, subgradient) = self.objective(&Loss, &self.linear(mapping)?, indices)?;
        Ok(LossValue { value, subgradient })
    }

    /// Loss(W) / ‖W‖₂ of a linear mapping on all demonstrations; nothing for W = 0, whose loss of zero says nothing.
    pub fn unit_loss(&self, mapping: &[f64]) -> Result<Option<f64>> {
        self.unit_loss_of(&self.linear(mapping)?)
    }

    /// The loss on all demonstrations divided by the size of the mapping, see [`ParametricMapping::size`]; nothing where that is zero.
    pub fn unit_loss_of<M: ParametricMapping>(&self, mapping: &M) -> Result<Option<f64>> {
        let all = self.data.all();
        let inputs: Vec<Context> = self.data.inputs(&all).into_iter().cloned().collect();
        let weights = mapping.weights_of_all(&inputs)?;
        let size = mapping.size(&weights);
        if size == 0.0 {
            return Ok(None);
        }
        Ok(Some(Loss.value_and_gradient(&self.planner, &self.data, &weights, &all)?.0 / size))
    }

    /// Share of the demonstrated actions that an agent would take itself; the likeliest where it draws them.
    pub fn accuracy(&self, agent: &Agent) -> Result<f64> {
        let data = &self.data;
        let all = || (0..self.len()).flat_map(|i| data.trajectories(i).iter().map(move |trajectory| (i, trajectory)));
        let contexts: Vec<Context> = all().map(|(i, _)| self.context(i).clone()).collect();
        let visits: Vec<&[StateId]> = all().map(|(_, path)| &path.states[..path.actions.len()]).collect();
        let taken: Vec<u32> = all().flat_map(|(_, path)| path.actions.iter().map(|action| action.0)).collect();
        Ok(Predictions::of(self.model(), agent, &contexts, &visits)?.accuracy(&taken))
    }

    /// [`Demonstrations::horizon`].
    pub fn horizon(&self) -> Result<f64> {
        known(&self.horizon, || self.data.horizon(self.model()))
    }

    /// [`Demonstrations::entry_bound`].
    pub fn entry_bound(&self) -> Result<f64> {
        known(&self.entry_bound, || self.data.entry_bound(self.model()))
    }

    /// [`Demonstrations::declared_entry_bound`].
    pub fn declared_entry_bound(&self) -> Result<f64> {
        known(&self.declared_entry_bound, || self.data.declared_entry_bound(self.model()))
    }

    /// [`Demonstrations::sum_bound`].
    pub fn sum_bound(&self) -> Result<f64> {
        self.data.sum_bound(self.model())
    }

    /// A digest of everything that the result depends on besides the settings: dynamics, features, start, criterion,
    /// contexts, their starts and demonstrations.
    pub fn digest(&self) -> String {
        sha256(|sink| {
            self.model().feed(sink);
            self.data.feed(sink);
        })
    }
}

/// A number that is computed once.
fn known(cell: &OnceLock<f64>, compute: impl FnOnce() -> Result<f64>) -> Result<f64> {
    match cell.get() {
        Some(value) => Ok(*value),
        None => compute().map(|value| *cell.get_or_init(|| value)),
    }
}
