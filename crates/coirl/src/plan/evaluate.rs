//! Policies evaluated: values, Q-values, occupancies, feature expectations and successor features.
//!
//! Feature expectations come from the adjoint: the discounted occupancy d of a policy from the start distribution solves
//! one linear system, (I − γPᵀ) d = ξ, whatever the number of features, and μ = Φᵀ d. No S × k matrix is formed. Only the
//! states that the policy can reach enter the system.

use crate::error::{Error, Result, check_finite, check_length, check_room};
use crate::model::{Criterion, Features, Mdp, Pairs, Reward};
use crate::plan::kernels::buffers::{Buffers, OccupancyBuffers};
use crate::plan::kernels::linear::{
    Mixing, ROUNDING, Scratch, Series, Solved, occupancy_series, policy_occupancy, policy_values, policy_values_where,
};
use crate::plan::kernels::real::Real;
use crate::plan::kernels::sweep::PolicyMatrix;
use crate::plan::planner::start_value;
use crate::plan::policy::{Policy, pairs_of};
use crate::plan::problem::Problem;
use crate::plan::solve::average;
use crate::plan::solve::exact::pair_values;

/// Relative tolerances from which single precision is good enough for an occupancy, and kernels for which it pays.
pub(super) const SINGLE_PRECISION_TOLERANCE: f64 = 1e-6;
pub(super) const SINGLE_PRECISION_ENTRIES: usize = 50_000;

/// How often a policy visits each pair: Σ γᵗ P(s_t, a_t) from the start distribution; for the average-reward criterion the
/// long-run shares. Under discount one the visits to absorbing states are counted once.
#[derive(Debug, Clone, PartialEq)]
pub struct Occupancy {
    pairs: Vec<f64>,
}

impl Occupancy {
    /// Visits of each pair.
    pub fn of_pairs(&self) -> &[f64] {
        &self.pairs
    }

    /// Visits of each state.
    pub fn of_states(&self, pairs: &Pairs) -> Vec<f64> {
        (0..pairs.n_states()).map(|s| self.pairs[pairs.of_state(s)].iter().sum()).collect()
    }

    /// μ = Σ d(s, a) φ(s, a).
    pub fn feature_expectations(&self, features: &Features, pairs: &Pairs) -> Vec<f64> {
        let mut mu = vec![0.0; features.n_features()];
        for s in 0..pairs.n_states() {
            for pair in pairs.of_state(s).filter(|&pair| self.pairs[pair] != 0.0) {
                features.add_scaled(s, pair, self.pairs[pair], &mut mu);
            }
        }
        mu
    }
}

/// V^π, to rounding; for the average-reward criterion the bias.
pub fn values(mdp: &Mdp<'_>, reward: &Reward, policy: &Policy) -> Result<Vec<f64>> {
    let values = unchecked_values(mdp, reward, policy)?;
    check_finite("values", &values)?;
    Ok(values)
}

fn unchecked_values(mdp: &Mdp<'_>, reward: &Reward, policy: &Policy) -> Result<Vec<f64>> {
    let problem = Problem::new(mdp, reward)?;
    match (mdp.criterion(), policy) {
        (Criterion::FiniteHorizon { steps, discount }, _) => {
            let stages = stage_distributions(mdp.pairs(), policy, steps)?;
            let problem = Problem { gamma: discount, ..problem };
            let mut values = vec![0.0; mdp.n_states()];
            for stage in stages.iter().rev() {
                let q = pair_values(&problem, &values);
                for (s, value) in values.iter_mut().enumerate() {
                    *value = mdp.pairs().of_state(s).map(|pair| stage.share(s, pair) * q[pair]).sum();
                }
            }
            Ok(values)
        }
        (_, Policy::Staged(_) | Policy::StagedStochastic(_)) => Err(staged_mismatch(mdp)),
        (Criterion::Average, _) => Ok(average::evaluate(mdp, reward, policy)?.bias),
        (Criterion::Discounted { .. } | Criterion::TotalReward, _) => {
            let matrix = policy_matrix(mdp, policy, |s, pair| reward.at(s, pair), &[])?;
            let mut values = matrix.reward.clone();
            converged(policy_values(&matrix, &mut values, &mut Scratch::default()))?;
            Ok(values)
        }
    }
}

/// ξ·V^π; for the average-reward criterion the gain.
pub fn value(mdp: &Mdp<'_>, reward: &Reward, policy: &Policy) -> Result<f64> {
    match mdp.criterion() {
        Criterion::Average => {
            Problem::new(mdp, reward)?;
            finite_value(average::evaluate(mdp, reward, policy)?.gain)
        }
        _ => finite_value(start_value(mdp.initial(), &values(mdp, reward, policy)?)),
    }
}

fn finite_value(value: f64) -> Result<f64> {
    check_finite("value", &[value]).map(|()| value)
}

/// Q(s, a) = R(s, a) + γ Σ P(s' | s, a) V(s') for every pair.
pub fn q_values(mdp: &Mdp<'_>, reward: &Reward, values: &[f64]) -> Result<Vec<f64>> {
    check_length("values", mdp.n_states(), values.len())?;
    check_finite("values", values)?;
    let q = pair_values(&Problem::new(mdp, reward)?, values);
    check_finite("Q-values", &q)?;
    Ok(q)
}

/// How often the policy visits each pair.
pub fn occupancy(mdp: &Mdp<'_>, policy: &Policy) -> Result<Occupancy> {
    let pairs = mdp.pairs();
    let mut visits = vec![0.0; pairs.len()];
    let spread = |states: &[f64], stage: Stage<'_>, visits: &mut [f64]| {
        for (s, &d) in states.iter().enumerate().filter(|entry| *entry.1 != 0.0) {
            pairs.of_state(s).for_each(|pair| visits[pair] += d * stage.share(s, pair));
        }
    };
    match (mdp.criterion(), policy) {
        (Criterion::FiniteHorizon { steps, discount }, _) => {
            let mut states = mdp.initial().to_vec();
            let stages = stage_distributions(pairs, policy, steps)?;
            for (t, stage) in stages.iter().enumerate() {
                let mut now = vec![0.0; pairs.len()];
                spread(&states, *stage, &mut now);
                visits.iter_mut().zip(&now).for_each(|(sum, x)| *sum += x * discount.powi(t as i32));
                states.iter_mut().for_each(|x| *x = 0.0);
                for pair in (0..pairs.len()).filter(|&pair| now[pair] != 0.0) {
                    mdp.kernel().successors(pair).for_each(|(next, p)| states[next] += now[pair] * p);
                }
            }
        }
        (_, Policy::Staged(_) | Policy::StagedStochastic(_)) => return Err(staged_mismatch(mdp)),
        (Criterion::Average, _) => {
            let stage = stage_distributions(pairs, policy, 1)?;
            spread(&average::stationary_distribution(mdp, policy)?, stage[0], &mut visits);
        }
        (Criterion::Discounted { .. } | Criterion::TotalReward, Policy::Stationary(actions)) => {
            let chosen = pairs_of(pairs, actions)?;
            let (states, occupancy) = chosen_occupancy(mdp, &chosen, ROUNDING)?;
            states.iter().zip(&occupancy).for_each(|(&s, &d)| visits[chosen[s as usize] as usize] = d);
        }
        (Criterion::Discounted { .. } | Criterion::TotalReward, Policy::Stochastic(_)) => {
            let matrix = policy_matrix(mdp, policy, |_, _| 0.0, &[])?;
            let (states, solved) = policy_occupancy(&matrix, mdp.initial(), ROUNDING, &mut Scratch::default());
            converged(solved)?;
            let stage = stage_distributions(pairs, policy, 1)?;
            spread(&states, stage[0], &mut visits);
        }
    }
    Ok(Occupancy { pairs: visits })
}

/// μ^π from the start distribution.
pub fn feature_expectations(mdp: &Mdp<'_>, policy: &Policy) -> Result<Vec<f64>> {
    let mu = occupancy(mdp, policy)?.feature_expectations(mdp.features(), mdp.pairs());
    check_finite("feature expectations", &mu)?;
    Ok(mu)
}

/// Σ_s start(s) ψ^π(s): feature expectations from a start whose weights may be negative and need not add up to one. For stationary
/// policies and the criteria with a sum.
pub(crate) fn feature_expectations_from(mdp: &Mdp<'_>, start: &[f64], policy: &Policy) -> Result<Vec<f64>> {
    check_length("start", mdp.n_states(), start.len())?;
    feature_expectations(&mdp.clone().with_signed_start(start), policy)
}

/// ψ^π(s), the feature expectations from every state: row-major `[n_states, n_features]`. One linear system per feature;
/// ask for it only where every state is needed.
pub fn successor_features(mdp: &Mdp<'_>, policy: &Policy) -> Result<Vec<f64>> {
    let (Criterion::Discounted { .. } | Criterion::TotalReward) = mdp.criterion() else {
        return Err(Error::CriterionMismatch {
            operation: "the matrix of successor features",
            criterion: mdp.criterion().name(),
            hint: "use feature expectations from the start distribution",
        });
    };
    let features = mdp.features();
    discounted_sums(mdp, policy, features.n_features(), |s, pair, share, out| features.add_scaled(s, pair, share, out))
}

/// E[Σ γᵗ x(s_t, a_t)] from every state, for vectors x of `width` numbers: row-major `[n_states, width]`. `add` adds a share
/// of the vector of a state and a pair to a row. For the criteria with a sum.
pub fn discounted_sums(
    mdp: &Mdp<'_>,
    policy: &Policy,
    width: usize,
    add: impl Fn(usize, usize, f64, &mut [f64]),
) -> Result<Vec<f64>> {
    let n = mdp.n_states();
    let mut matrix = policy_matrix(mdp, policy, |_, _| 0.0, &[])?;
    let mut own = vec![0.0; n * width];
    let stage = stage_distributions(mdp.pairs(), policy, 1)?;
    for s in 0..n {
        for pair in mdp.pairs().of_state(s) {
            let share = stage[0].share(s, pair);
            if share != 0.0 {
                add(s, pair, share, &mut own[s * width..(s + 1) * width]);
            }
        }
    }
    let mut scratch = Scratch::default();
    let mut values = vec![0.0; n];
    for j in 0..width {
        (0..n).for_each(|s| matrix.reward[s] = own[s * width + j]);
        values.copy_from_slice(&matrix.reward);
        converged(policy_values(&matrix, &mut values, &mut scratch))?;
        (0..n).for_each(|s| own[s * width + j] = values[s]);
    }
    check_finite("discounted sums", &own)?;
    Ok(own)
}

/// The values of the policy that takes pair `chosen[s]` in state `s`, on a model that mixes slowly. For discounts below one.
pub(super) fn slow_values(problem: &Problem<'_>, chosen: &[u32]) -> Result<Vec<f64>> {
    let mut buffers = Buffers::lent(problem.kernel.n_entries());
    let Buffers { matrix, scratch, .. } = &mut *buffers;
    let reward = |s: usize| problem.reward.of_pair(s, chosen[s] as usize);
    matrix.gather_rows(problem.kernel, problem.gamma, &problem.rows_of(chosen), reward);
    let mut values = matrix.reward.clone();
    converged(policy_values_where(Mixing::Slow, matrix, &mut values, scratch))?;
    Ok(values)
}

/// μ of the policy that takes pair `chosen[s]` in state `s`, for the criteria with a sum.
pub(super) fn chosen_feature_expectations(mdp: &Mdp<'_>, chosen: &[u32], tolerance: f64) -> Result<Vec<f64>> {
    let (states, occupancy) = chosen_occupancy(mdp, chosen, tolerance)?;
    let mut mu = vec![0.0; mdp.features().n_features()];
    for (&s, &d) in states.iter().zip(&occupancy) {
        mdp.features().add_scaled(s as usize, chosen[s as usize] as usize, d, &mut mu);
    }
    check_finite("feature expectations", &mu)?;
    Ok(mu)
}

/// The states that a policy reaches from the start distribution, with their occupancy.
fn chosen_occupancy(mdp: &Mdp<'_>, chosen: &[u32], tolerance: f64) -> Result<(Vec<u32>, Vec<f64>)> {
    occupancy_in(mdp, chosen, tolerance, &mut OccupancyBuffers::lent(mdp.kernel().n_entries()))
}

fn occupancy_in(
    mdp: &Mdp<'_>,
    chosen: &[u32],
    tolerance: f64,
    buffers: &mut OccupancyBuffers,
) -> Result<(Vec<u32>, Vec<f64>)> {
    const UNSEEN: u32 = u32::MAX;
    let kernel = mdp.kernel();
    let initial = mdp.initial();
    let mut states: Vec<u32> = (0..initial.len() as u32).filter(|&s| initial[s as usize] != 0.0).collect();
    let OccupancyBuffers { krylov, matrix, single, local, rows, .. } = buffers;
    local.clear();
    local.resize(initial.len(), UNSEEN);
    states.iter().enumerate().for_each(|(i, &s)| local[s as usize] = i as u32);
    let mut done = 0;
    while done < states.len() && states.len() < initial.len() {
        let pair = chosen[states[done] as usize] as usize;
        for &next in kernel.row(kernel.row_of(pair)).0 {
            if local[next as usize] == UNSEEN {
                local[next as usize] = states.len() as u32;
                states.push(next);
            }
        }
        done += 1;
    }
    let start: Vec<f64> = states.iter().map(|&s| initial[s as usize]).collect();
    rows.clear();
    rows.extend(states.iter().map(|&s| kernel.row_of(chosen[s as usize] as usize) as u32));
    if tolerance >= SINGLE_PRECISION_TOLERANCE && kernel.n_entries() >= SINGLE_PRECISION_ENTRIES {
        gather(single, mdp, rows, &states, local);
        // Feature expectations are what is wanted: their error falls faster than that of the occupancy.
        let estimate = |new: &[f32], old: &[f32]| expectation_defect(mdp, &states, chosen, new, old);
        let Series { sum, solved } = occupancy_series(single, &start, tolerance, Some(&estimate));
        if solved.converged {
            return Ok((states, sum));
        }
    }
    gather(matrix, mdp, rows, &states, local);
    let (occupancy, solved) = policy_occupancy(matrix, &start, tolerance, krylov);
    converged(solved)?;
    Ok((states, occupancy))
}

/// The largest |Σ (new − γ·old) φ_j|: how far one more step of the series changes a feature expectation beyond shrinking it.
fn expectation_defect(mdp: &Mdp<'_>, states: &[u32], chosen: &[u32], new: &[f32], old: &[f32]) -> f64 {
    let gamma = mdp.criterion().discount() as f32;
    let mut off = vec![0.0; mdp.features().n_features()];
    for (i, &s) in states.iter().enumerate() {
        let change = f64::from(new[i] - gamma * old[i]);
        mdp.features().add_scaled(s as usize, chosen[s as usize] as usize, change, &mut off);
    }
    crate::plan::kernels::linear::sup_norm(&off)
}

/// The matrix of a policy's `rows` among the `states` it reaches.
fn gather<T: Real>(matrix: &mut PolicyMatrix<T>, mdp: &Mdp<'_>, rows: &[u32], states: &[u32], local: &[u32]) {
    let gamma = mdp.criterion().discount();
    if states.len() == mdp.n_states() && states.is_sorted() {
        matrix.gather_rows(mdp.kernel(), gamma, rows, |_| 0.0);
    } else {
        matrix.gather_local(mdp.kernel(), gamma, rows, states, local);
    }
}

/// Refuses systems that were not solved.
pub(super) fn converged(solved: Solved) -> Result<()> {
    if solved.converged { Ok(()) } else { Err(Error::EvaluationStalled { residual: solved.residual }) }
}

/// The matrix of a stationary policy, its rows mixed where it is stochastic. Transitions into the states of `cut` are
/// dropped.
pub(super) fn policy_matrix(
    mdp: &Mdp<'_>,
    policy: &Policy,
    reward: impl Fn(usize, usize) -> f64,
    cut: &[usize],
) -> Result<PolicyMatrix> {
    let pairs = mdp.pairs();
    let stages = stage_distributions(pairs, policy, 1)?;
    let gamma = mdp.criterion().discount();
    let mut rewards = Vec::with_capacity(pairs.n_states());
    let mut rows = Vec::with_capacity(pairs.n_states());
    for s in 0..pairs.n_states() {
        let mut row: Vec<(u32, f64)> = Vec::new();
        let mut own = 0.0;
        for pair in pairs.of_state(s) {
            let share = stages[0].share(s, pair);
            if share != 0.0 {
                own += share * reward(s, pair);
                row.extend(mdp.kernel().successors(pair).map(|(next, p)| (next as u32, share * p)));
            }
        }
        row.sort_by_key(|entry| entry.0);
        row.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 += later.1;
            }
            same
        });
        row.retain(|entry| !cut.contains(&(entry.0 as usize)));
        if gamma == 1.0 && row.iter().all(|entry| entry.0 as usize == s) && row.iter().map(|e| e.1).sum::<f64>() > 0.5 {
            row.clear();
        }
        rewards.push(own);
        rows.push(row);
    }
    Ok(PolicyMatrix::from_rows(gamma, rewards, rows.into_iter()))
}

/// What a policy does at one time.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    pairs: &'a Pairs,
    policy: StagePolicy<'a>,
}

#[derive(Debug, Clone, Copy)]
enum StagePolicy<'a> {
    Actions(&'a [crate::model::ActionId]),
    Probabilities(&'a [f64]),
}

impl Stage<'_> {
    /// The probability of a pair in its state.
    pub fn share(self, state: usize, pair: usize) -> f64 {
        match self.policy {
            StagePolicy::Actions(actions) => f64::from(u8::from(actions[state] == self.pairs.action(pair))),
            StagePolicy::Probabilities(probabilities) => probabilities[pair],
        }
    }
}

/// The policy at each of `steps` times, after checking that it fits the pairs.
pub fn stage_distributions<'a>(pairs: &'a Pairs, policy: &'a Policy, steps: usize) -> Result<Vec<Stage<'a>>> {
    // One handle per stage, four words each.
    check_room("horizon of a policy's evaluation", &[4, steps])?;
    let stage = |policy| Stage { pairs, policy };
    match policy {
        Policy::Stationary(actions) => {
            pairs_of(pairs, actions)?;
            Ok(vec![stage(StagePolicy::Actions(actions)); steps])
        }
        Policy::Stochastic(probabilities) => {
            check_length("policy (probabilities per pair)", pairs.len(), probabilities.len())?;
            Ok(vec![stage(StagePolicy::Probabilities(probabilities)); steps])
        }
        Policy::Staged(stages) => {
            check_length("policy (stages)", steps, stages.len())?;
            stages.iter().try_for_each(|actions| pairs_of(pairs, actions).map(|_| ()))?;
            Ok(stages.iter().map(|actions| stage(StagePolicy::Actions(actions))).collect())
        }
        Policy::StagedStochastic(stages) => {
            check_length("policy (stages)", steps, stages.len())?;
            let fits = |stage: &Vec<f64>| check_length("policy (probabilities per pair)", pairs.len(), stage.len());
            stages.iter().try_for_each(fits)?;
            Ok(stages.iter().map(|probabilities| stage(StagePolicy::Probabilities(probabilities))).collect())
        }
    }
}

fn staged_mismatch(mdp: &Mdp<'_>) -> Error {
    Error::CriterionMismatch {
        operation: "a policy in stages",
        criterion: mdp.criterion().name(),
        hint: "it needs the finite-horizon criterion",
    }
}
