//! Demonstrations that say the same twice, and demonstrations that say different things about the same.
//!
//! Two demonstrations of the same context and start with the same evidence are one, counted twice. Two with nearly the same
//! context and different behaviour can both be optimal only if the two behaviours are equally good; otherwise no mapping
//! explains both.

use super::demonstrations::Finding;
use super::support::paths;
use crate::demos::{Demonstration, Evidence, Origin};
use crate::model::{ActionId, StateId};
use std::collections::HashMap;

/// Every demonstration that repeats or contradicts an earlier one, or itself, once.
pub(super) fn repeats(demonstrations: &[Demonstration], near: f64, same: f64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut repeated = vec![false; demonstrations.len()];
    let mut seen: HashMap<Vec<u64>, usize> = HashMap::new();
    for (i, demonstration) in demonstrations.iter().enumerate() {
        let first = *seen.entry(fingerprint(demonstration)).or_insert(i);
        if first != i {
            repeated[i] = true;
            findings.push(Finding::Duplicate { first, second: i });
        }
    }
    let group = groups_of_near_contexts(demonstrations, near);
    let mut expectations: HashMap<(usize, &Origin), (usize, &[f64])> = HashMap::new();
    let mut actions: HashMap<(usize, StateId), (usize, ActionId)> = HashMap::new();
    for (i, demonstration) in demonstrations.iter().enumerate().filter(|&(i, _)| !repeated[i]) {
        if let Evidence::FeatureExpectations(mu) = demonstration.evidence() {
            let (first, other) = *expectations.entry((group[i], demonstration.origin())).or_insert((i, mu));
            if mu.iter().zip(other).any(|(x, y)| (x - y).abs() > same) {
                findings.push(Finding::Contradiction { first, second: i, state: None });
            }
        }
        let steps = paths(demonstration).into_iter().flatten().flat_map(|path| path.states.iter().zip(&path.actions));
        let mut with_itself = None;
        let conflict = steps.into_iter().find_map(|(&state, &action)| {
            let (first, other) = *actions.entry((group[i], state)).or_insert((i, action));
            if first == i && other != action {
                with_itself.get_or_insert(state);
            }
            (first != i && other != action).then_some((first, state))
        });
        if let Some((first, state)) = conflict {
            findings.push(Finding::Contradiction { first, second: i, state: Some(state) });
        } else if let Some(state) = with_itself {
            findings.push(Finding::Undecided { demonstration: i, state });
        }
    }
    findings
}

/// Everything that a demonstration consists of, as whole numbers.
fn fingerprint(demonstration: &Demonstration) -> Vec<u64> {
    let mut words: Vec<u64> = Vec::new();
    let mut list = |numbers: &mut dyn ExactSizeIterator<Item = u64>| {
        words.push(numbers.len() as u64);
        words.extend(numbers);
    };
    list(&mut demonstration.context().values().iter().map(|x| x.to_bits()));
    match demonstration.origin() {
        Origin::Model => list(&mut std::iter::empty()),
        Origin::States(states) => list(&mut states.iter().map(|state| u64::from(state.0))),
    }
    match demonstration.evidence() {
        Evidence::FeatureExpectations(mu) => list(&mut mu.iter().map(|x| x.to_bits())),
        Evidence::Trajectories(paths) => {
            for path in paths {
                list(&mut path.states.iter().map(|state| u64::from(state.0)));
                list(&mut path.actions.iter().map(|action| u64::from(action.0)));
            }
        }
    }
    words
}

/// For every demonstration the first one whose context is within `near` of its own in every number. Contexts are walked
/// through in the order of their first number, so that only neighbours are compared.
fn groups_of_near_contexts(demonstrations: &[Demonstration], near: f64) -> Vec<usize> {
    let context = |i: usize| demonstrations[i].context().values();
    let first_number = |i: usize| context(i).first().copied().unwrap_or(0.0);
    let mut order: Vec<usize> = (0..demonstrations.len()).collect();
    order.sort_by(|&a, &b| first_number(a).total_cmp(&first_number(b)).then(a.cmp(&b)));
    let mut group: Vec<usize> = (0..demonstrations.len()).collect();
    let mut leaders: Vec<usize> = Vec::new();
    for &i in &order {
        leaders.retain(|&leader| first_number(i) - first_number(leader) <= near);
        let close = |&&leader: &&usize| context(i).iter().zip(context(leader)).all(|(x, y)| (x - y).abs() <= near);
        match leaders.iter().find(close) {
            Some(&leader) => group[i] = leader,
            None => leaders.push(i),
        }
    }
    group
}
