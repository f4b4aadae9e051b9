//! The contextual Markov decision process without its reward mapping, and the process of one context.

use super::context::{Context, ContextSpace};
use super::criterion::Criterion;
use super::dynamics::{Dynamics, Mixture};
use super::features::{Features, Reward};
use super::kernel::{Kernel, ROW_SUM_TOLERANCE};
use super::pairs::{Pairs, StateId};
use super::proper::{absorbing_states, check_every_policy_proper};
use crate::error::{Error, Result, check_length};
use std::borrow::Cow;
use std::sync::Arc;

/// (C, S, A, P, φ, ξ, γ): everything but the mapping from contexts to rewards.
#[derive(Debug, Clone, PartialEq)]
pub struct Cmdp {
    dynamics: Dynamics,
    features: Features,
    initial: Vec<f64>,
    criterion: Criterion,
    context_space: ContextSpace,
    names: Names,
    /// A flag per pair, where some are not known.
    pub(super) known: Option<Vec<bool>>,
}

/// What people call the parts of a model. Empty lists where nothing was said.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Names {
    /// The model itself.
    pub model: String,
    /// One name per action.
    pub actions: Vec<String>,
    /// One name per feature.
    pub features: Vec<String>,
    /// One name per context coordinate.
    pub contexts: Vec<String>,
}

/// The process of one context: what a planner sees.
#[derive(Debug, Clone)]
pub struct Mdp<'a> {
    kernel: Cow<'a, Kernel>,
    features: &'a Features,
    initial: Cow<'a, [f64]>,
    criterion: Criterion,
}

impl Cmdp {
    /// Checks that the parts fit together. Contexts are anything that the dynamics accept; see
    /// [`with_context_space`](Self::with_context_space).
    pub fn new(dynamics: Dynamics, features: Features, initial: Vec<f64>, criterion: Criterion) -> Result<Self> {
        let pairs = dynamics.pairs();
        features.check_rows(pairs)?;
        check_initial(pairs, &initial)?;
        let context_space = match &dynamics {
            Dynamics::Mixture(mixture) => ContextSpace::Simplex { dimension: mixture.n_kernels() },
            Dynamics::Shared(_) | Dynamics::Clusters(_) => ContextSpace::Any,
        };
        let model =
            Self { dynamics, features, initial, criterion, context_space, names: Names::default(), known: None };
        model.check_criterion(criterion)?;
        Ok(model)
    }

    /// This model with other dynamics over its pairs, for instance learned ones. Features, start, criterion, contexts,
    /// names and known pairs stay; a mixture needs contexts on the simplex, and declares them if the model had no context space.
    pub fn with_dynamics(mut self, dynamics: Dynamics) -> Result<Self> {
        if dynamics.pairs() != self.pairs() {
            let reason = "its states, actions or admissible pairs differ from those of the model".into();
            return Err(Error::IncompatibleKernels { kernel: 0, reason });
        }
        self.dynamics = dynamics;
        self.check_criterion(self.criterion)?;
        let space = match (&self.dynamics, &self.context_space) {
            (Dynamics::Mixture(mixture), ContextSpace::Any) => ContextSpace::Simplex { dimension: mixture.n_kernels() },
            (_, space) => space.clone(),
        };
        self.with_context_space(space)
    }

    /// This model with another start distribution.
    pub fn with_initial(mut self, initial: Vec<f64>) -> Result<Self> {
        check_initial(self.pairs(), &initial)?;
        self.initial = initial;
        Ok(self)
    }

    /// Declares where contexts live.
    pub fn with_context_space(mut self, space: ContextSpace) -> Result<Self> {
        space.check()?;
        if let (Some(wanted), Some(given)) = (self.dynamics.context_dimension(), space.dimension()) {
            check_length("context", wanted, given)?;
        }
        if matches!(self.dynamics, Dynamics::Mixture(_)) && !matches!(space, ContextSpace::Simplex { .. }) {
            let reason = "a mixture of kernels needs contexts on the simplex".into();
            return Err(Error::InvalidContext { values: Vec::new(), reason });
        }
        if let (Some(dimension), false) = (space.dimension(), self.names.contexts.is_empty()) {
            check_length("context names", dimension, self.names.contexts.len())?;
        }
        self.context_space = space;
        Ok(self)
    }

    /// Names the parts; a list must be empty or complete.
    pub fn with_names(mut self, names: Names) -> Result<Self> {
        let check = |what, list: &[String], n| if list.is_empty() { Ok(()) } else { check_length(what, n, list.len()) };
        check("action names", &names.actions, self.n_actions())?;
        check("feature names", &names.features, self.n_features())?;
        let dimension = self.context_space.dimension().unwrap_or(names.contexts.len());
        check("context names", &names.contexts, dimension)?;
        self.names = names;
        Ok(self)
    }

    /// The model over other pairs; what it starts from, its criterion, contexts and names stay.
    pub(super) fn with_parts(&self, dynamics: Dynamics, features: Features, known: Option<Vec<bool>>) -> Self {
        let (initial, context_space, names) = (self.initial.clone(), self.context_space.clone(), self.names.clone());
        Self { dynamics, features, initial, criterion: self.criterion, context_space, names, known }
    }

    /// This model under another optimality criterion.
    pub fn with_criterion(mut self, criterion: Criterion) -> Result<Self> {
        self.check_criterion(criterion)?;
        self.criterion = criterion;
        Ok(self)
    }

    fn check_criterion(&self, criterion: Criterion) -> Result<()> {
        if criterion.checked()? != Criterion::TotalReward {
            return Ok(());
        }
        let kernels: Vec<Cow<'_, Kernel>> = match &self.dynamics {
            Dynamics::Shared(kernel) => vec![Cow::Borrowed(kernel)],
            Dynamics::Mixture(m) => (0..m.n_kernels()).map(|i| m.base(i).map(Cow::Owned)).collect::<Result<_>>()?,
            Dynamics::Clusters(clusters) => clusters.kernels().iter().map(Cow::Borrowed).collect(),
        };
        let absorbing = absorbing_states(&kernels[0]);
        for kernel in kernels {
            check_every_policy_proper(&kernel)?;
            // With the same absorbing states, every mixture of proper base kernels is proper as well: a set that some
            // policy never leaves under the mixture is one that it never leaves under each base.
            let own = absorbing_states(&kernel);
            if let Some(state) = (0..absorbing.len()).find(|&s| absorbing[s] != own[s]) {
                return Err(Error::ImproperPolicy { state });
            }
            for state in (0..absorbing.len()).filter(|&s| absorbing[s]) {
                if let Some((feature, value)) = self.features.first_non_zero(kernel.pairs(), state) {
                    return Err(Error::AbsorbingFeature { state, feature, value });
                }
            }
        }
        Ok(())
    }

    /// The process of a context.
    pub fn mdp(&self, context: &Context) -> Result<Mdp<'_>> {
        Ok(self.mdp_over(self.dynamics.kernel(context)?))
    }

    /// The process when the dynamics do not depend on the context.
    pub fn shared_mdp(&self) -> Result<Mdp<'_>> {
        match &self.dynamics {
            Dynamics::Shared(kernel) => Ok(self.mdp_over(Cow::Borrowed(kernel))),
            Dynamics::Mixture(_) | Dynamics::Clusters(_) => Err(Error::ContextNeeded),
        }
    }

    /// The process of a cluster of contexts.
    pub(crate) fn cluster_mdp(&self, cluster: usize) -> Result<Mdp<'_>> {
        let kernels = if let Dynamics::Clusters(clusters) = &self.dynamics { clusters.kernels() } else { &[] };
        match kernels.get(cluster) {
            Some(kernel) => Ok(self.mdp_over(Cow::Borrowed(kernel))),
            None => Err(Error::shape("cluster", format!("below {}", kernels.len()), cluster)),
        }
    }

    fn mdp_over<'a>(&'a self, kernel: Cow<'a, Kernel>) -> Mdp<'a> {
        Mdp { kernel, features: &self.features, initial: Cow::Borrowed(&self.initial), criterion: self.criterion }
    }

    /// How the kernel depends on the context.
    pub fn dynamics(&self) -> &Dynamics {
        &self.dynamics
    }

    /// The base kernels, when the dynamics are a mixture.
    pub fn mixture(&self) -> Option<&Mixture> {
        match &self.dynamics {
            Dynamics::Mixture(mixture) => Some(mixture),
            Dynamics::Shared(_) | Dynamics::Clusters(_) => None,
        }
    }

    /// The admissible pairs.
    pub fn pairs(&self) -> &Arc<Pairs> {
        self.dynamics.pairs()
    }

    /// φ.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// ξ, the start distribution.
    pub fn initial(&self) -> &[f64] {
        &self.initial
    }

    /// The optimality criterion with its discount.
    pub fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// Where contexts live.
    pub fn context_space(&self) -> &ContextSpace {
        &self.context_space
    }

    /// What the parts are called.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Number of states.
    pub fn n_states(&self) -> usize {
        self.pairs().n_states()
    }

    /// Number of actions.
    pub fn n_actions(&self) -> usize {
        self.pairs().n_actions()
    }

    /// Length k of a feature vector.
    pub fn n_features(&self) -> usize {
        self.features.n_features()
    }
}

impl<'a> Mdp<'a> {
    /// P.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The admissible pairs.
    pub fn pairs(&self) -> &Pairs {
        self.kernel.pairs()
    }

    /// φ.
    pub fn features(&self) -> &'a Features {
        self.features
    }

    /// ξ.
    pub fn initial(&self) -> &[f64] {
        &self.initial
    }

    /// The optimality criterion with its discount.
    pub fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// Number of states.
    pub fn n_states(&self) -> usize {
        self.kernel.n_states()
    }

    /// w·φ.
    pub fn reward(&self, weights: &[f64]) -> Result<Reward> {
        self.features.reward(weights)
    }

    /// This process, started in one state.
    pub fn starting_in(mut self, state: StateId) -> Result<Self> {
        if state.index() >= self.n_states() {
            return Err(Error::shape("start state", format!("below {}", self.n_states()), state.0));
        }
        let mut initial = vec![0.0; self.n_states()];
        initial[state.index()] = 1.0;
        self.initial = Cow::Owned(initial);
        Ok(self)
    }

    /// Whether no action leads out of this state.
    pub fn is_absorbing(&self, state: StateId) -> bool {
        let stays = |(next, p): (usize, f64)| next == state.index() || p == 0.0;
        self.pairs().of_state(state.index()).all(|pair| self.kernel.successors(pair).all(stays))
    }

    /// This process from a start whose weights may be negative, for sums over starts that are solved at once.
    pub(crate) fn with_signed_start(mut self, start: &[f64]) -> Self {
        debug_assert_eq!(start.len(), self.n_states());
        self.initial = Cow::Owned(start.to_vec());
        self
    }

    /// This process with another start distribution.
    pub fn with_initial(mut self, initial: Vec<f64>) -> Result<Self> {
        check_initial(self.kernel.pairs(), &initial)?;
        self.initial = Cow::Owned(initial);
        Ok(self)
    }
}

fn check_initial(pairs: &Pairs, initial: &[f64]) -> Result<()> {
    check_length("initial", pairs.n_states(), initial.len())?;
    if let Some(state) = initial.iter().position(|p| !(0.0..=1.0 + ROW_SUM_TOLERANCE).contains(p)) {
        return Err(Error::InvalidInitial { state, value: initial[state] });
    }
    let sum: f64 = initial.iter().sum();
    if (sum - 1.0).abs() > ROW_SUM_TOLERANCE { Err(Error::InitialNotStochastic { sum }) } else { Ok(()) }
}
