//! Policies of one kernel with what they are worth in any context, for generalised policy improvement.
//!
//! Of every distinct policy π_j the library keeps the sums ψ_j(s) of the basis rewards (see [`Basis`]): b linear systems
//! per policy when it is added, b numbers per state. In a context with coefficients κ
//!
//! ```text
//! Q_j(s, a) = κ·(Bφ(s, a) + γ Σ P(s'|s, a) ψ_j(s')),        π(s) ∈ argmax_a max_j Q_j(s, a),
//! ```
//!
//! and V^π ≥ max_j V^{π_j} in every state (Barreto et al. 2017, Theorem 1). The sums over s' do not depend on the
//! context. They are made when a state is first asked about and kept, all policies side by side, so that a later answer
//! costs b multiply-adds per row of that state and policy and touches nothing else. Beyond a fixed amount of memory
//! they are made anew each time; the answers are the same to the bit.
//!
//! Actions whose Q-values differ by no more than 1e-9 of the size of the library's values tie, and the lowest is taken.

use super::basis::{Basis, BasisRewards};
use super::bounds::{Constants, TheoremBound};
use super::known::KnownContexts;
use crate::error::{Error, Result};
use crate::model::{ActionId, Cmdp, Criterion, Dynamics, Mdp, StateId};
use crate::plan::{Policy, TIE_TOLERANCE, evaluate};
use rayon::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of expected sums that are kept.
const EXPECTED_BYTES: usize = 1 << 29;
/// Bytes of sums ψ that a library may have.
const LARGEST_BYTES: usize = 1 << 32;

/// Policies of one kernel, ready for generalised policy improvement.
#[derive(Debug)]
pub struct PolicyLibrary<'a> {
    mdp: Mdp<'a>,
    rewards: BasisRewards,
    constants: Constants,
    known: KnownContexts,
    /// ψ as [state][basis row][policy].
    sums: Vec<f64>,
    /// The largest |ψ| of each basis row over all policies that were ever added.
    scale: Vec<f64>,
    /// E[ψ(s')] of the rows of each state, as [row][basis row][policy].
    expected: Vec<OnceLock<Box<[f64]>>>,
    expected_bytes: AtomicUsize,
}

/// What generalised policy improvement does in one state.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Choice {
    /// The action.
    pub action: ActionId,
    /// max_j Q_j(s, action): the improved policy is worth at least this from here.
    pub value: f64,
    /// Number of the policy that it is worth this to.
    pub policy: usize,
}

impl<'a> PolicyLibrary<'a> {
    /// An empty library for a model whose dynamics do not depend on the context.
    pub fn shared(model: &'a Cmdp, basis: &Basis) -> Result<Self> {
        let (dynamics, hint) = match model.dynamics() {
            Dynamics::Shared(_) => return Self::over(model, model.shared_mdp()?, basis),
            Dynamics::Mixture(_) => ("a mixture of kernels", "take the policy of the nearest known context instead"),
            Dynamics::Clusters(_) => ("a kernel per cluster", "use one library per cluster"),
        };
        Err(Error::DynamicsDependOnContext { dynamics, hint })
    }

    /// An empty library for the contexts of one cluster.
    pub fn of_cluster(model: &'a Cmdp, cluster: usize, basis: &Basis) -> Result<Self> {
        Self::over(model, model.cluster_mdp(cluster)?, basis)
    }

    fn over(model: &'a Cmdp, mdp: Mdp<'a>, basis: &Basis) -> Result<Self> {
        check_criterion(model)?;
        let rewards = basis.rewards(model)?;
        let n_states = mdp.n_states();
        Ok(Self {
            constants: Constants::new(&rewards, model.criterion().discount()),
            known: KnownContexts::new(model.pairs().clone(), rewards.size),
            sums: Vec::new(),
            scale: vec![0.0; rewards.size],
            expected: unmade(n_states),
            expected_bytes: AtomicUsize::new(0),
            rewards,
            mdp,
        })
    }

    /// The contexts and policies of the library.
    pub fn known(&self) -> &KnownContexts {
        &self.known
    }

    /// The constants of the theorems.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// Adds contexts, as coefficients, with their optimal policies. Policies that are there already cost nothing.
    pub fn add<'p>(&mut self, plans: impl IntoIterator<Item = (&'p [f64], &'p Policy)>) -> Result<()> {
        let mut known = self.known.clone();
        for (coefficients, policy) in plans {
            known.add(coefficients, policy)?;
        }
        let (n, b) = (self.mdp.n_states(), self.rewards.size);
        let bytes = known.n_policies().saturating_mul(8 * n * b);
        if bytes > LARGEST_BYTES {
            let what = "bytes of successor values of a library (states × policies × coefficients of a context × 8)";
            return Err(Error::TooLarge { what, count: bytes, limit: LARGEST_BYTES });
        }
        let (before, after) = (self.known.n_policies(), known.n_policies());
        if after > before {
            let new: Vec<Vec<f64>> =
                (before..after).into_par_iter().map(|j| self.evaluate(&known.policy(j))).collect::<Result<_>>()?;
            let mut sums = vec![0.0; n * b * after];
            for at in 0..n * b {
                let (own, old) = (&mut sums[at * after..(at + 1) * after], at * before);
                own[..before].copy_from_slice(&self.sums[old..old + before]);
                own[before..].iter_mut().zip(&new).for_each(|(x, values)| *x = values[at]);
            }
            self.replace(sums, after);
        }
        self.known = known;
        Ok(())
    }

    /// ψ of a policy, row-major [state, basis row].
    fn evaluate(&self, policy: &Policy) -> Result<Vec<f64>> {
        evaluate::discounted_sums(&self.mdp, policy, self.rewards.size, |state, pair, share, out| {
            out.iter_mut().zip(self.rewards.at(state, pair)).for_each(|(sum, x)| *sum += share * x);
        })
    }

    fn replace(&mut self, sums: Vec<f64>, n_policies: usize) {
        let b = self.rewards.size;
        for (at, row) in sums.chunks_exact(n_policies).enumerate() {
            let scale = &mut self.scale[at % b];
            *scale = row.iter().fold(*scale, |most, x| most.max(x.abs()));
        }
        self.sums = sums;
        self.expected = unmade(self.mdp.n_states());
        self.expected_bytes = AtomicUsize::new(0);
    }

    /// Keeps some policies. Ties are broken as before.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        let n = self.known.n_policies();
        let kept: Vec<usize> = (0..n).filter(|&j| keep[j]).collect();
        if kept.len() < n {
            let sums = self.sums.chunks_exact(n).flat_map(|row| kept.iter().map(|&j| row[j])).collect();
            self.replace(sums, kept.len());
            self.known.retain(keep);
        }
    }

    /// The action in one state. Touches the rows of that state only.
    pub fn act(&self, coefficients: &[f64], state: StateId) -> Result<Choice> {
        self.check(coefficients)?;
        if state.index() >= self.mdp.n_states() {
            return Err(Error::shape("state", format!("below {}", self.mdp.n_states()), state.0));
        }
        Ok(self.choose(coefficients, state.index(), self.tie(coefficients), |_| true))
    }

    /// The actions in all states.
    pub fn improve(&self, coefficients: &[f64]) -> Result<Vec<Choice>> {
        self.check(coefficients)?;
        let tie = self.tie(coefficients);
        let choose = |state| self.choose(coefficients, state, tie, |_| true);
        Ok((0..self.mdp.n_states()).into_par_iter().with_min_len(64).map(choose).collect())
    }

    /// What a policy of the library is worth in every state of a context.
    pub fn values(&self, coefficients: &[f64], policy: usize) -> Result<Vec<f64>> {
        self.check(coefficients)?;
        let (n, b) = (self.known.n_policies(), self.rewards.size);
        if policy >= n {
            return Err(Error::shape("policy of the library", format!("below {n}"), policy));
        }
        let value = |row: &[f64]| coefficients.iter().zip(row[policy..].iter().step_by(n)).map(|(c, x)| c * x).sum();
        Ok(self.sums.chunks_exact(n * b).map(value).collect())
    }

    /// The theorem's bound, by the distance to the nearest known coefficients.
    pub fn bound(&self, coefficients: &[f64]) -> Result<TheoremBound> {
        self.check(coefficients)?;
        let (nearest, distance) = self.known.nearest(coefficients).ok_or_else(empty)?;
        let bound = self.constants.improvement_rate() * distance;
        Ok(TheoremBound { bound, printed: bound, distance, distance_of: self.rewards.coefficients, nearest })
    }

    /// Makes what answers are read from for all states, as far as memory allows.
    pub fn prepare(&self) {
        (0..self.mdp.n_states()).into_par_iter().for_each(|state| self.with_expected(state, |_| ()));
    }

    fn check(&self, coefficients: &[f64]) -> Result<()> {
        self.known.check(coefficients)?;
        if self.known.is_empty() { Err(empty()) } else { Ok(()) }
    }

    /// Differences of Q up to this are ties.
    pub(super) fn tie(&self, coefficients: &[f64]) -> f64 {
        TIE_TOLERANCE * coefficients.iter().zip(&self.scale).map(|(c, size)| (c * size).abs()).sum::<f64>()
    }

    /// The lowest action within `tie` of the best in a state, by the `admitted` policies.
    pub(super) fn choose(
        &self,
        coefficients: &[f64],
        state: usize,
        tie: f64,
        admitted: impl Fn(usize) -> bool,
    ) -> Choice {
        let (pairs, gamma) = (self.mdp.pairs(), self.constants.discount);
        let first_row = self.mdp.kernel().layout().state_rows[state] as usize;
        let best_of_rows = self.with_expected(state, |expected| {
            let mut values = vec![0.0; self.known.n_policies()];
            let best = |row: &[f64]| {
                combine(coefficients, row, &mut values);
                let each = values.iter().copied().enumerate().filter(|(j, _)| admitted(*j));
                each.fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best })
            };
            expected.chunks_exact(self.row_size()).map(best).collect::<Vec<_>>()
        });
        let q = |pair: usize| {
            let reward: f64 = coefficients.iter().zip(self.rewards.at(state, pair)).map(|(c, x)| c * x).sum();
            let (policy, value) = best_of_rows[self.mdp.kernel().row_of(pair) - first_row];
            Choice { action: pairs.action(pair), value: reward + gamma * value, policy }
        };
        let range = pairs.of_state(state);
        let best = range.clone().map(|pair| q(pair).value).fold(f64::NEG_INFINITY, f64::max);
        let first = q(range.start);
        range.map(q).find(|choice| choice.value >= best - tie).unwrap_or(first)
    }

    /// Q of every policy for one action of a state, less what does not depend on the policy.
    pub(super) fn continuations(&self, coefficients: &[f64], state: usize, action: ActionId) -> Vec<f64> {
        let kernel = self.mdp.kernel();
        let row = self
            .mdp
            .pairs()
            .find(state, action.index())
            .map_or(0, |pair| kernel.row_of(pair) - kernel.layout().state_rows[state] as usize);
        self.with_expected(state, |expected| {
            let mut values = vec![0.0; self.known.n_policies()];
            combine(coefficients, &expected[row * self.row_size()..(row + 1) * self.row_size()], &mut values);
            values.iter_mut().for_each(|x| *x *= self.constants.discount);
            values
        })
    }

    fn row_size(&self) -> usize {
        self.rewards.size * self.known.n_policies()
    }

    /// Hands E[ψ(s')] of a state's rows to `read`, from memory where it is kept.
    fn with_expected<T>(&self, state: usize, read: impl FnOnce(&[f64]) -> T) -> T {
        if let Some(kept) = self.expected[state].get() {
            return read(kept);
        }
        let made = self.expect(state);
        let bytes = 8 * made.len();
        if self.expected_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= EXPECTED_BYTES {
            return read(self.expected[state].get_or_init(|| made));
        }
        self.expected_bytes.fetch_sub(bytes, Ordering::Relaxed);
        read(&made)
    }

    /// E[ψ(s')] of a state's rows. Four successors at a time, so that the sums are loaded and stored less often.
    fn expect(&self, state: usize) -> Box<[f64]> {
        let kernel = self.mdp.kernel();
        let width = self.row_size();
        let rows = kernel.layout().state_rows[state] as usize..kernel.layout().state_rows[state + 1] as usize;
        let mut made = vec![0.0; rows.len() * width];
        let sums = |next: u32| &self.sums[next as usize * width..(next as usize + 1) * width];
        for (own, row) in made.chunks_exact_mut(width).zip(rows) {
            let (next, p) = kernel.row(row);
            let (fours, rest) = next.as_chunks::<4>();
            let (p_fours, p_rest) = p.as_chunks::<4>();
            for (next, p) in fours.iter().zip(p_fours) {
                let [a, b, c, d] = next.map(sums);
                for i in 0..width.min(a.len()).min(b.len()).min(c.len()).min(d.len()) {
                    own[i] = own[i] + p[0] * a[i] + p[1] * b[i] + p[2] * c[i] + p[3] * d[i];
                }
            }
            for (&next, p) in rest.iter().zip(p_rest) {
                own.iter_mut().zip(sums(next)).for_each(|(x, sum)| *x += p * sum);
            }
        }
        made.into()
    }

    /// ψ and the sizes by which ties are judged, as a file holds them.
    pub(crate) fn sums(&self) -> (&[f64], &[f64]) {
        (&self.sums, &self.scale)
    }

    /// Fills an empty library from a file. Refuses sums that are not those of the policies.
    pub(crate) fn fill(&mut self, known: KnownContexts, sums: Vec<f64>, scale: Vec<f64>) -> Result<()> {
        let (n, b, n_policies) = (self.mdp.n_states(), self.rewards.size, known.n_policies());
        crate::error::check_length("sums of a library", n * b * n_policies, sums.len())?;
        crate::error::check_length("scale of a library", b, scale.len())?;
        crate::error::check_finite("sums of a library", &sums)?;
        crate::error::check_finite("scale of a library", &scale)?;
        let policies: Vec<Policy> = (0..n_policies).map(|j| known.policy(j)).collect();
        self.replace(sums, n_policies);
        self.known = known;
        for (own, given) in self.scale.iter_mut().zip(&scale) {
            if *given < *own {
                return Err(Error::shape("scale of a library", format!("at least {own}"), given));
            }
            *own = *given;
        }
        policies.par_iter().enumerate().try_for_each(|(j, policy)| self.check_sums(j, policy))
    }

    /// Whether ψ_j = Bφ + γ P ψ_j under the policy.
    fn check_sums(&self, number: usize, policy: &Policy) -> Result<()> {
        let (b, n_policies, gamma) = (self.rewards.size, self.known.n_policies(), self.constants.discount);
        let at = |state: usize, i: usize| self.sums[(state * b + i) * n_policies + number];
        for (state, action) in policy.actions().unwrap_or_default().iter().enumerate() {
            let pair = self.mdp.pairs().find(state, action.index());
            let pair = pair.ok_or(Error::ActionNotAdmissible { state, action: action.0.into() })?;
            for (i, reward) in self.rewards.at(state, pair).iter().enumerate() {
                let next: f64 = self.mdp.kernel().successors(pair).map(|(s, p)| p * at(s, i)).sum();
                let off = (at(state, i) - reward - gamma * next).abs();
                if off > TIE_TOLERANCE * self.scale[i] {
                    let expected = format!("those of policy {number}");
                    return Err(Error::shape(
                        "sums of a library",
                        expected,
                        format!("off by {off:e} in state {state}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Refuses criteria that the theorems are not about.
pub(super) fn check_criterion(model: &Cmdp) -> Result<()> {
    match model.criterion() {
        Criterion::Discounted { .. } => Ok(()),
        other => Err(Error::CriterionMismatch {
            operation: "transfer between contexts",
            criterion: other.name(),
            hint: "plan for every context instead",
        }),
    }
}

pub(super) fn empty() -> Error {
    Error::EmptyLibrary { place: String::new() }
}

fn unmade(n_states: usize) -> Vec<OnceLock<Box<[f64]>>> {
    (0..n_states).map(|_| OnceLock::new()).collect()
}

/// Σ cᵢ·rowᵢ over the basis, for all policies at once.
fn combine(coefficients: &[f64], rows: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (c, row) in coefficients.iter().zip(rows.chunks_exact(out.len())) {
        out.iter_mut().zip(row).for_each(|(sum, x)| *sum += c * x);
    }
}
