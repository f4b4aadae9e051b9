//! The large MDP: contexts inside the state, so that methods that know of no contexts apply.
//!
//! State (c, s) has number c·|S| + s. An episode draws one of the contexts, each as likely, and stays in it:
//!
//! ```text
//! P((c, s') | (c, s), a) = P_c(s' | s, a),        φ(c, s) = c ⊙ φ(s) ∈ R^{dk}.
//! ```
//!
//! A reward W ∈ R^{dk} is then a linear mapping, feature expectations are the mean over contexts of c ⊙ μ_c, and planning for W
//! is planning in every context for cᵀW. The kernel is block-diagonal and kept as such: with n contexts it has n times the
//! entries of one, and a feature row the d·nnz(φ) numbers that are not zero, so that a sweep costs n times a sweep of one
//! context. As a dense matrix, as it was published, it costs n² times as much; that is a matter of storage, not of the method.

use crate::demos::Origin;
use crate::error::{Error, Result};
use crate::model::{Cmdp, Context, Criterion, Dynamics, Features, Kernel, KernelBuilder, Pairs, SparseRows, StateId};
use crate::plan::{Planner, Policy, evaluate};
use std::sync::Arc;

/// A contextual model over some contexts, as one process without contexts.
#[derive(Debug, Clone, PartialEq)]
pub struct LargeMdp {
    model: Cmdp,
    n_states: usize,
}

impl LargeMdp {
    /// From contexts of one length, each with where it starts. Refused for the average criterion: nothing leads from one context
    /// to another, so that no average is common to all.
    pub fn new(model: &Cmdp, contexts: &[(&Context, &Origin)]) -> Result<Self> {
        let Some((first, _)) = contexts.first() else {
            return Err(Error::shape("contexts of a large MDP", "at least 1", 0));
        };
        if model.criterion() == Criterion::Average {
            return Err(Error::InvalidSetting {
                name: "criterion",
                value: model.criterion().name().into(),
                reason: "a large MDP never leaves its context and has no common average; keep the contexts separate",
            });
        }
        let dimension = first.values().len();
        let mut builder = KernelBuilder::new(Arc::new(repeated(model.pairs(), contexts.len())?));
        let mut rows = Rows::new(dimension, model.n_features())?;
        let mut initial = Vec::with_capacity(contexts.len() * model.n_states());
        for (block, (context, origin)) in contexts.iter().enumerate() {
            crate::error::check_length("context", dimension, context.values().len())?;
            let mdp = origin.of(model.mdp(context)?)?;
            push_block(&mut builder, mdp.kernel(), block * model.n_states())?;
            initial.extend(mdp.initial().iter().map(|p| p / contexts.len() as f64));
            rows.push(context.values(), model);
        }
        let kernel = builder.finish()?;
        let features = Features::per_pair(kernel.pairs(), rows.finish()?)?;
        let model = Cmdp::new(Dynamics::Shared(kernel), features, initial, model.criterion())?;
        Ok(Self { n_states: model.n_states() / contexts.len(), model })
    }

    /// The process, as a model whose dynamics and rewards no longer depend on the context.
    pub fn model(&self) -> &Cmdp {
        &self.model
    }

    /// Where a state of a context, given by its row, is.
    pub fn state(&self, context: usize, state: StateId) -> StateId {
        StateId((context * self.n_states) as u32 + state.0)
    }

    /// What a deterministic policy of the large MDP does in one context; nothing where it is drawn anew in every state.
    pub fn policy_in(&self, context: usize, policy: &Policy) -> Option<Policy> {
        let block = context * self.n_states..(context + 1) * self.n_states;
        match policy {
            Policy::Stationary(actions) => Some(Policy::Stationary(actions.get(block)?.to_vec())),
            Policy::Staged(stages) => {
                let stage = |actions: &Vec<_>| actions.get(block.clone()).map(<[_]>::to_vec);
                Some(Policy::Staged(stages.iter().map(stage).collect::<Option<_>>()?))
            }
            Policy::Stochastic(_) | Policy::StagedStochastic(_) => None,
        }
    }

    /// Plans for W: the policy, its feature expectations, which are the mean over contexts of c ⊙ μ_c, and the sweeps that it took.
    pub fn respond(&self, mapping: &[f64]) -> Result<(Policy, Vec<f64>, usize)> {
        let mdp = self.model.shared_mdp()?;
        let plan = Planner::default().plan(&mdp, &mdp.reward(mapping)?)?;
        let feature_expectations = evaluate::feature_expectations(&mdp, &plan.policy)?;
        Ok((plan.policy, feature_expectations, plan.certificate.sweeps))
    }
}

/// The admissible pairs of one context, once per context.
fn repeated(pairs: &Pairs, contexts: usize) -> Result<Pairs> {
    let n_states = pairs.n_states().saturating_mul(contexts);
    if pairs.is_full() {
        return Pairs::all(n_states, pairs.n_actions());
    }
    // Refuses what is too large before the mask is written out.
    Pairs::check_size(n_states, pairs.n_actions())?;
    Pairs::from_mask(n_states, pairs.n_actions(), &pairs.mask().repeat(contexts))
}

fn push_block(builder: &mut KernelBuilder, kernel: &Kernel, first_state: usize) -> Result<()> {
    (0..kernel.pairs().len()).try_for_each(|pair| {
        builder.push_row(kernel.successors(pair).map(|(next, p)| ((first_state + next) as i64, p)))
    })
}

/// The rows c ⊙ φ, without their zeros.
struct Rows {
    n_features: usize,
    row_start: Vec<usize>,
    feature: Vec<u32>,
    value: Vec<f64>,
}

impl Rows {
    fn new(dimension: usize, n_features: usize) -> Result<Self> {
        let n_features = dimension.saturating_mul(n_features);
        if u32::try_from(n_features).is_err() {
            return Err(Error::TooLarge {
                what: "features of a large MDP",
                count: n_features,
                limit: u32::MAX as usize,
            });
        }
        Ok(Self { n_features, row_start: vec![0], feature: Vec::new(), value: Vec::new() })
    }

    /// The rows of all pairs in a context.
    fn push(&mut self, context: &[f64], model: &Cmdp) {
        let k = model.n_features();
        let pairs = model.pairs();
        for state in 0..pairs.n_states() {
            for pair in pairs.of_state(state) {
                let present: Vec<(usize, f64)> = match model.features() {
                    Features::State { values, .. } => {
                        let row = values[state * k..(state + 1) * k].iter().copied().enumerate();
                        row.filter(|entry| entry.1 != 0.0).collect()
                    }
                    Features::StateAction(rows) => rows.row(pair).collect(),
                };
                for (i, x) in context.iter().enumerate().filter(|entry| *entry.1 != 0.0) {
                    self.feature.extend(present.iter().map(|(j, _)| (i * k + j) as u32));
                    self.value.extend(present.iter().map(|(_, phi)| x * phi));
                }
                self.row_start.push(self.feature.len());
            }
        }
    }

    fn finish(self) -> Result<SparseRows> {
        SparseRows::new(self.n_features, self.row_start, self.feature, self.value)
    }
}
