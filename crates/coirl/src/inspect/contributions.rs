//! What a reward, a value and a choice are made of: one term per context field i and feature j.
//!
//! ```text
//! f_j(c)          = Σ_i  c_i W_ij
//! R_c(s, a)       = Σ_ij c_i W_ij φ_j(s, a)
//! V_c             = Σ_ij c_i W_ij μ_j
//! Q(s, a) − Q(s, b) = Σ_ij c_i W_ij (ψ_j(s, a) − ψ_j(s, b)),     ψ(s, a) = φ(s, a) + γ E[ψ^π(s′) | s, a],
//! ```
//!
//! with π optimal for the context. A network does not add up what the fields of a context do: its weights f_j(c) are not taken
//! apart, and there is one row of terms. The terms add up to what they explain, to rounding. ψ(s, a) is φ(s, a) and γ times the
//! feature expectations of π started where a leads: one linear system per action that is compared, whatever the number of
//! features.

use crate::error::{Error, Result, check_length};
use crate::mapping::{LinearMapping, RewardMapping};
use crate::model::{ActionId, Cmdp, Context, Criterion, Mdp, Reward, StateId};
use crate::plan::{Plan, Planner, Policy, TIE_TOLERANCE, evaluate};

/// A mapping in one context, planned with.
#[derive(Debug, Clone)]
pub struct Contributions<'a> {
    mdp: Mdp<'a>,
    reward: Reward,
    plan: Plan,
    weights: Terms,
}

/// One number per context field and feature, or per feature alone.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Terms {
    n_features: usize,
    values: Vec<f64>,
}

/// Why an action was chosen: what it is better in than the next best one.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Choice {
    /// Where.
    pub state: StateId,
    /// What the agent does there.
    pub action: ActionId,
    /// The best of the other actions, the lowest of equals.
    pub runner_up: ActionId,
    /// Q(s, action) − Q(s, runner-up).
    pub difference: f64,
    /// Whether the two are equally good, so that the lower index decided.
    pub tied: bool,
    /// ψ_j(s, action) − ψ_j(s, runner-up).
    pub features: Vec<f64>,
    /// c_i W_ij times that.
    pub terms: Terms,
}

impl Terms {
    /// The term of a field and a feature.
    pub fn at(&self, field: usize, feature: usize) -> f64 {
        self.values[field * self.n_features + feature]
    }

    /// One row of terms per field.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_features)
    }

    /// Sums over the fields: one number per feature.
    pub fn of_features(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_features];
        self.rows().for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x));
        sums
    }

    /// Sums over the features: one number per field.
    pub fn of_fields(&self) -> Vec<f64> {
        self.rows().map(|row| row.iter().sum()).collect()
    }

    /// The sum of all terms.
    pub fn total(&self) -> f64 {
        self.of_features().iter().sum()
    }

    /// Every column times its factor.
    fn times(&self, factors: &[f64]) -> Self {
        let scaled = |row: &[f64]| row.iter().zip(factors).map(|(x, factor)| x * factor).collect::<Vec<_>>();
        Self { n_features: self.n_features, values: self.rows().flat_map(scaled).collect() }
    }
}

impl<'a> Contributions<'a> {
    /// Plans with the mapping in a context.
    pub fn new(model: &'a Cmdp, mapping: &LinearMapping, context: &Context) -> Result<Self> {
        let whole = Self::undivided(model, mapping, context)?;
        let (k, c) = (mapping.n_features(), context.values());
        let term = |(i, row): (usize, &[f64])| row.iter().map(|w| c[i] * w).collect::<Vec<_>>();
        let mut values: Vec<f64> = mapping.values().chunks_exact(k).enumerate().flat_map(term).collect();
        // What everybody has is a field of its own.
        values.extend(mapping.intercept().unwrap_or_default());
        Ok(Self { weights: Terms { n_features: k, values }, ..whole })
    }

    /// Contributions under any mapping, with the fields of the context together: terms have one row.
    pub fn undivided(model: &'a Cmdp, mapping: &dyn RewardMapping, context: &Context) -> Result<Self> {
        let mdp = model.mdp(context)?;
        let values = mapping.weights(context)?;
        check_length("mapping (columns)", model.n_features(), mapping.n_features())?;
        let reward = mdp.reward(&values)?;
        let plan = Planner::default().plan(&mdp, &reward)?;
        Ok(Self { mdp, reward, plan, weights: Terms { n_features: mapping.n_features(), values } })
    }

    /// c_i W_ij: what every field adds to the weight of every feature; f_j(c) where they are undivided.
    pub fn weights(&self) -> &Terms {
        &self.weights
    }

    /// What the agent does in a state; with a finite horizon, at its beginning.
    pub fn action(&self, state: StateId) -> Result<ActionId> {
        let actions = match &self.plan.policy {
            Policy::Stationary(actions) => Some(actions),
            Policy::Staged(stages) => stages.first(),
            Policy::Stochastic(_) | Policy::StagedStochastic(_) => None,
        };
        actions.and_then(|actions| actions.get(state.index()).copied()).ok_or_else(|| self.no_state(state))
    }

    /// c_i W_ij φ_j(s, a), which adds up to R_c(s, a).
    pub fn reward(&self, state: StateId, action: ActionId) -> Result<Terms> {
        let pair = self.pair(state, action)?;
        let mut features = vec![0.0; self.weights.n_features];
        self.mdp.features().add_scaled(state.index(), pair, 1.0, &mut features);
        Ok(self.weights.times(&features))
    }

    /// c_i W_ij μ_j, which adds up to the value from the model's start.
    pub fn value(&self) -> Result<Terms> {
        Ok(self.weights.times(&evaluate::feature_expectations(&self.mdp, &self.plan.policy)?))
    }

    /// Why the agent's action rather than the runner-up; nothing where there is only one action.
    pub fn choice(&self, state: StateId) -> Result<Option<Choice>> {
        let (Criterion::Discounted { .. } | Criterion::TotalReward) = self.mdp.criterion() else {
            return Err(Error::CriterionMismatch {
                operation: "explaining a single choice",
                criterion: self.mdp.criterion().name(),
                hint: "look at the contributions to the value",
            });
        };
        let action = self.action(state)?;
        let chosen = self.pair(state, action)?;
        let q = evaluate::q_values(&self.mdp, &self.reward, &self.plan.values)?;
        let others = self.mdp.pairs().of_state(state.index()).filter(|&pair| pair != chosen);
        let Some(second) = others.reduce(|best, pair| if q[pair] > q[best] { pair } else { best }) else {
            return Ok(None);
        };
        let (after, instead) = (self.after(state, chosen)?, self.after(state, second)?);
        let features: Vec<f64> = after.iter().zip(&instead).map(|(x, y)| x - y).collect();
        let largest = q.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let difference = q[chosen] - q[second];
        Ok(Some(Choice {
            state,
            action,
            runner_up: self.mdp.pairs().action(second),
            difference,
            tied: difference <= TIE_TOLERANCE * largest,
            terms: self.weights.times(&features),
            features,
        }))
    }

    /// The state in which the model starts most often, among those in which there is something to choose; the lowest of equals.
    pub fn usual_start(&self) -> StateId {
        let initial = self.mdp.initial();
        let rank = |s: usize| (self.mdp.pairs().of_state(s).len() > 1, initial[s]);
        let most = (1..initial.len()).fold(0, |most, s| if rank(s) > rank(most) { s } else { most });
        StateId(most as u32)
    }

    /// ψ(s, a).
    fn after(&self, state: StateId, pair: usize) -> Result<Vec<f64>> {
        let gamma = self.mdp.criterion().discount();
        let mut features = vec![0.0; self.weights.n_features];
        // At discount one an absorbing state has no features and leads nowhere else.
        if gamma > 0.0 {
            let mut next = vec![0.0; self.mdp.n_states()];
            self.mdp.kernel().successors(pair).for_each(|(s, p)| next[s] += p);
            features = evaluate::feature_expectations(&self.mdp.clone().with_initial(next)?, &self.plan.policy)?;
            features.iter_mut().for_each(|x| *x *= gamma);
        }
        self.mdp.features().add_scaled(state.index(), pair, 1.0, &mut features);
        Ok(features)
    }

    fn pair(&self, state: StateId, action: ActionId) -> Result<usize> {
        if state.index() >= self.mdp.n_states() {
            return Err(self.no_state(state));
        }
        let found = self.mdp.pairs().find(state.index(), action.index());
        found.ok_or(Error::ActionNotAdmissible { state: state.index(), action: i64::from(action.0) })
    }

    fn no_state(&self, state: StateId) -> Error {
        Error::shape("state", format!("below {}", self.mdp.n_states()), state.0)
    }
}
