//! What policies are worth in the simulator that also know the action of the step before.
//!
//! A fitted state k is then seen with probability P(k | s, b) in simulator state s after action b, and the policy is π(a | s, b) = Σ_k
//! P(k | s, b) π(a | k). What follows depends on the pair (s, a) alone, so that the values of pairs solve
//!
//! ```text
//! x(s, a) = r(s, a) + γ Σ_s' P(s' | s, a) Σ_a' π(a' | s', a) x(s', a'),
//! ```
//!
//! for discounted rewards, and at γ = 1 for the chances to survive and ever to take an inadmissible action. Solved by Gauss–Seidel sweeps
//! over the pairs that the policy reaches from the patient's start, some thousand at most.

use super::assignment::{Draws, Shares, shares};
use super::carried_back::{CarriedBack, FittedPolicy};
use super::columns::{N_COLUMNS, Row};
use super::doses;
use super::emission::{Bloc, Streams};
use super::test_patients::TestPatients;
use super::truth::Truth;
use super::worth::Worth;
use coirl::check::check_length;
use coirl::domains::Patient;
use coirl::domains::sepsis::{N_ACTIONS, N_CLUSTERS, SURVIVAL};
use coirl::model::{ActionId, StateId};
use coirl::{Error, Result};
use rayon::prelude::*;

/// Change of a sweep, relative to what there is, below which values have settled.
const SETTLED: f64 = 1e-12;
const MOST_SWEEPS: usize = 100_000;
/// The discounted reward, and the chances of surviving and of ever taking an inadmissible action.
const N_SUMS: usize = 3;
/// A pair that was not met.
const UNMET: u32 = u32::MAX;

/// Where simulator states are assigned to, for a list of patients, for agents that know the action of the step before.
#[derive(Debug, Clone, PartialEq)]
pub struct AssignmentAfter {
    /// By action before, and then by state.
    later: Vec<Shares>,
    first: Vec<Shares>,
    n_fitted: usize,
}

impl AssignmentAfter {
    fn of_state(&self, before: usize, state: usize) -> &[(usize, f64)] {
        self.later.get(before * N_CLUSTERS + state).map_or(&[], Vec::as_slice)
    }
}

impl TestPatients<'_> {
    /// Draws rows as [`TestPatients::assignment`] does, and has them assigned after every action; a row with nothing but the doses of that
    /// action is given beside them, and none for rows of admission.
    pub fn assignment_after(
        &self,
        draws: Draws,
        mut assign: impl FnMut(&[Row], Option<&Row>) -> Result<Vec<usize>>,
    ) -> Result<AssignmentAfter> {
        draws.check()?;
        let (patients, emission) = (self.patients(), self.truth().emission());
        let row = |s: usize, draw: usize, streams: &mut Streams| {
            let patient = &patients[(s * draws.per_state + draw) % patients.len()];
            emission.row(patient, StateId(s as u32), Bloc::Later, streams)
        };
        let first = |i: usize, _: usize, streams: &mut Streams| {
            emission.row(&patients[i], patients[i].start, Bloc::First, streams)
        };
        let mut later = Vec::with_capacity(N_ACTIONS * N_CLUSTERS);
        for before in 0..N_ACTIONS {
            let mut given = [f64::NAN; N_COLUMNS];
            doses::write(&mut given, ActionId(before as u32));
            let mut after = |rows: &[Row]| assign(rows, Some(&given));
            later.extend(shares(N_CLUSTERS, draws, "assigned state", row, &mut after)?);
        }
        let first = shares(patients.len(), draws, "assigned admission", first, &mut |rows| assign(rows, None))?;
        let most = later.iter().chain(&first).flatten().map(|share| share.0).max().unwrap_or(0);
        Ok(AssignmentAfter { later, first, n_fitted: most.saturating_add(1) })
    }

    /// Carries a policy of fitted states back that know the action before. `policy` gives it for the patient of this place in the list.
    pub fn carried_back_after(
        &self,
        assignment: &AssignmentAfter,
        policy: impl Fn(usize) -> Result<FittedPolicy> + Sync,
    ) -> Result<CarriedBack> {
        check_length("patients of the assignment", self.patients().len(), assignment.first.len())?;
        let worth = |(i, patient): (usize, &Patient)| -> Result<Worth> {
            let fitted = policy(i)?;
            fitted.check(assignment.n_fitted)?;
            let first = fitted.mixed(&assignment.first[i]);
            let after = |before: usize, state: usize| fitted.mixed(assignment.of_state(before, state));
            self.truth().worth_after(patient, self.wishes_of(i), &first, after)
        };
        let worths: Vec<Worth> = self.patients().par_iter().enumerate().map(worth).collect::<Result<_>>()?;
        Ok(CarriedBack { policy: Worth::mean(worths.into_iter()), yardsticks: self.yardsticks() })
    }
}

/// What follows a pair: what is certain, and other pairs with their probabilities.
#[derive(Default)]
struct Following {
    own: [f64; N_SUMS],
    pairs: Vec<(u32, f64)>,
}

impl Truth {
    /// What a patient can expect who is first given an action with the probabilities `first`, and then in state s after action b one with
    /// those of `after(b, s)`.
    fn worth_after(
        &self,
        patient: &Patient,
        wishes: &[f64],
        first: &[f64; N_ACTIONS],
        after: impl Fn(usize, usize) -> [f64; N_ACTIONS],
    ) -> Result<Worth> {
        let mdp = self.simulator().shared_mdp()?;
        let reward = mdp.reward(wishes)?;
        let gamma = mdp.criterion().discount();
        let for_ever = |state: usize| reward.at(state, N_ACTIONS * state) / (1.0 - gamma);
        // Pairs in the order in which they are met; what is met after a pair has its number when it is met.
        let mut number = vec![UNMET; N_CLUSTERS * N_ACTIONS];
        let mut met: Vec<usize> = Vec::new();
        let mut meet = |pair: usize, met: &mut Vec<usize>| {
            if number[pair] == UNMET {
                number[pair] = met.len() as u32;
                met.push(pair);
            }
            number[pair]
        };
        let start = patient.start.index();
        let opening: Vec<(u32, f64)> = (0..N_ACTIONS)
            .filter(|&action| first[action] != 0.0)
            .map(|action| (meet(start * N_ACTIONS + action, &mut met), first[action]))
            .collect();
        let mut all: Vec<Following> = Vec::new();
        while all.len() < met.len() {
            let pair = met[all.len()];
            let (state, action) = (pair / N_ACTIONS, pair % N_ACTIONS);
            let mut following = Following { own: [reward.at(state, pair), 0.0, 0.0], pairs: Vec::new() };
            if !self.simulator().is_known(pair) {
                following.own[2] = 1.0;
            }
            for (next, p) in mdp.kernel().successors(pair) {
                if next >= N_CLUSTERS {
                    following.own[0] += gamma * p * for_ever(next);
                    following.own[1] += if next == SURVIVAL { p } else { 0.0 };
                    continue;
                }
                let chosen = after(action, next);
                for (then, share) in chosen.iter().enumerate().filter(|(_, share)| **share != 0.0) {
                    following.pairs.push((meet(next * N_ACTIONS + then, &mut met), p * share));
                }
            }
            all.push(following);
        }
        let sums = settled(&all, gamma)?;
        let expected = |j: usize| opening.iter().map(|&(pair, share)| share * sums[pair as usize][j]).sum();
        Ok(Worth { value: expected(0), survival: expected(1), unknown: expected(2) })
    }
}

/// The solution of x = own + discount · following.
fn settled(all: &[Following], gamma: f64) -> Result<Vec<[f64; N_SUMS]>> {
    let discounts = [gamma, 1.0, 1.0];
    let mut sums: Vec<[f64; N_SUMS]> = all.iter().map(|following| following.own).collect();
    let mut change = f64::INFINITY;
    for _ in 0..MOST_SWEEPS {
        change = 0.0;
        // Those met last are the furthest from the start: what they are worth is passed on within a sweep.
        for i in (0..all.len()).rev() {
            let mut later = [0.0; N_SUMS];
            for &(pair, p) in &all[i].pairs {
                let next = &sums[pair as usize];
                later.iter_mut().zip(next).for_each(|(sum, x)| *sum += p * x);
            }
            for j in 0..N_SUMS {
                let x = all[i].own[j] + discounts[j] * later[j];
                change = change.max((x - sums[i][j]).abs() / (1.0 + x.abs()));
                sums[i][j] = x;
            }
        }
        if change <= SETTLED {
            return Ok(sums);
        }
    }
    Err(Error::EvaluationStalled { residual: change })
}
