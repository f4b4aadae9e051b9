//! The record as a Markov decision process, in the form that fitted Q evaluation sweeps over.
//!
//! Only pairs that were seen have a value of their own. Steps in the same state with the same row of the policy form a class and
//! share V; a transition leads from a pair to a class or to the end. A policy that depends on the state alone has a class per state, so that
//! a sweep costs as much as there are distinct transitions, not steps.

use super::{Record, StepPolicy};
use std::cmp::Ordering;

/// The next class of the last step of an episode.
const END: u32 = u32::MAX;

/// Places of values: one per pair seen, one per state seen for the actions that nobody took there, and one for the mean over all steps.
#[derive(Debug)]
pub(super) struct EmpiricalModel {
    pub(super) pair_of_step: Vec<u32>,
    class_of_step: Vec<u32>,
    /// Place among the transitions, or the end.
    transition_of_step: Vec<u32>,
    /// First pair of each state seen, and the number of pairs.
    pub(super) states: Vec<usize>,
    /// First transition of each pair, and the number of transitions.
    pub(super) transitions: Vec<usize>,
    /// Class that each transition leads to.
    pub(super) next_class: Vec<u32>,
    /// First class of each state seen, and the number of classes.
    state_classes: Vec<usize>,
    /// First entry of each class, and the number of entries.
    classes: Vec<usize>,
    /// Place of a value and its probability.
    entries: Vec<(u32, f64)>,
}

/// How often everything was seen.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Times of each pair.
    pub(super) pairs: Vec<f64>,
    /// Sum of the rewards after it.
    pub(super) rewards: Vec<f64>,
    /// Times of each transition.
    pub(super) transitions: Vec<f64>,
}

impl Seen {
    /// What is left without a part. Times are whole numbers, so that nothing left is exactly zero.
    pub(super) fn without(&self, part: &Seen) -> Self {
        let subtract = |all: &[f64], part: &[f64]| all.iter().zip(part).map(|(x, y)| x - y).collect();
        Self {
            pairs: subtract(&self.pairs, &part.pairs),
            rewards: subtract(&self.rewards, &part.rewards),
            transitions: subtract(&self.transitions, &part.transitions),
        }
    }
}

impl EmpiricalModel {
    pub(super) fn new(record: &Record, policy: &StepPolicy) -> Self {
        let n_actions = record.n_actions();
        let pair = |step: usize| record.states()[step] as usize * n_actions + record.actions()[step] as usize;
        let (pair_of_step, first_steps) = ranks(record.n_steps(), |a, b| pair(a).cmp(&pair(b)));
        let pairs: Vec<usize> = first_steps.into_iter().map(pair).collect();
        let mut states = Vec::new();
        for (place, pair) in pairs.iter().enumerate() {
            if place == 0 || pair / n_actions != pairs[place - 1] / n_actions {
                states.push(place);
            }
        }
        let (class_of_step, members) = ranks(record.n_steps(), |a, b| {
            let of_state = record.states()[a].cmp(&record.states()[b]);
            of_state.then_with(|| compare(policy.row(a), policy.row(b)))
        });
        let (mut classes, mut entries) = (vec![0], Vec::new());
        let mut state_classes = vec![0; states.len() + 1];
        for member in members {
            let state = record.states()[member] as usize;
            let place = states.partition_point(|&first| pairs[first] / n_actions < state);
            state_classes[place + 1] += 1;
            let unseen = pairs.len() + place;
            let mut rest = 0.0;
            for (action, &share) in policy.row(member).iter().enumerate().filter(|(_, share)| **share > 0.0) {
                match pairs.binary_search(&(state * n_actions + action)) {
                    Ok(place) => entries.push((place as u32, share)),
                    Err(_) => rest += share,
                }
            }
            if rest > 0.0 {
                entries.push((unseen as u32, rest));
            }
            classes.push(entries.len());
        }
        (0..states.len()).for_each(|place| state_classes[place + 1] += state_classes[place]);
        states.push(pairs.len());
        let mut next = vec![END; record.n_steps()];
        for episode in 0..record.n_episodes() {
            let steps = record.steps(episode);
            (steps.start..steps.end - 1).for_each(|step| next[step] = class_of_step[step + 1]);
        }
        let (mut transition_of_step, firsts) =
            ranks(record.n_steps(), |a, b| (pair_of_step[a], next[a]).cmp(&(pair_of_step[b], next[b])));
        // The end is a transition of its own in this numbering; it leads to no value and is left out of the list.
        let mut place_of = vec![END; firsts.len()];
        let (mut transitions, mut next_class) = (vec![0; pairs.len() + 1], Vec::new());
        for (rank, &step) in firsts.iter().enumerate().filter(|(_, step)| next[**step] != END) {
            place_of[rank] = next_class.len() as u32;
            next_class.push(next[step]);
            transitions[pair_of_step[step] as usize + 1] += 1;
        }
        (0..pairs.len()).for_each(|place| transitions[place + 1] += transitions[place]);
        transition_of_step.iter_mut().for_each(|rank| *rank = place_of[*rank as usize]);
        Self {
            pair_of_step,
            class_of_step,
            transition_of_step,
            states,
            transitions,
            next_class,
            state_classes,
            classes,
            entries,
        }
    }

    pub(super) fn n_pairs(&self) -> usize {
        self.transitions.len() - 1
    }

    /// Values that there are.
    pub(super) fn n_values(&self) -> usize {
        self.n_pairs() + self.states.len()
    }

    /// V of every class: Σ_a π(a) Q(s, a).
    pub(super) fn class_values(&self, q: &[f64]) -> Vec<f64> {
        (0..self.classes.len() - 1).map(|class| self.class_value(q, class)).collect()
    }

    /// Brings V of the classes of one state up to date.
    pub(super) fn refresh(&self, q: &[f64], state: usize, class_values: &mut [f64]) {
        for class in self.state_classes[state]..self.state_classes[state + 1] {
            class_values[class] = self.class_value(q, class);
        }
    }

    fn class_value(&self, q: &[f64], class: usize) -> f64 {
        let entries = &self.entries[self.classes[class]..self.classes[class + 1]];
        entries.iter().map(|&(at, share)| share * q[at as usize]).sum()
    }

    /// V at a step, of class values.
    pub(super) fn at_step(&self, class_values: &[f64], step: usize) -> f64 {
        class_values[self.class_of_step[step] as usize]
    }

    /// What was seen of the patients of every fold, where patient p counts `times[p]` times.
    pub(super) fn seen(&self, record: &Record, folds: &[usize], n_folds: usize, times: &[f64]) -> Vec<Seen> {
        let nothing = Seen {
            pairs: vec![0.0; self.n_pairs()],
            rewards: vec![0.0; self.n_pairs()],
            transitions: vec![0.0; self.next_class.len()],
        };
        let mut all = vec![nothing; n_folds];
        for episode in 0..record.n_episodes() {
            let patient = record.patient(episode);
            let (seen, times) = (&mut all[folds[patient]], times[patient]);
            for step in record.steps(episode) {
                let pair = self.pair_of_step[step] as usize;
                seen.pairs[pair] += times;
                seen.rewards[pair] += times * record.rewards()[step];
                if let Some(count) = seen.transitions.get_mut(self.transition_of_step[step] as usize) {
                    *count += times;
                }
            }
        }
        all
    }
}

/// The rank of every item among those that differ, and the first item of each rank.
fn ranks(n: usize, order: impl Fn(usize, usize) -> Ordering) -> (Vec<u32>, Vec<usize>) {
    let mut sorted: Vec<usize> = (0..n).collect();
    sorted.sort_by(|&a, &b| order(a, b));
    let (mut rank, mut firsts) = (vec![0; n], Vec::<usize>::new());
    for &item in &sorted {
        if firsts.last().is_none_or(|&first| order(first, item) != Ordering::Equal) {
            firsts.push(item);
        }
        rank[item] = firsts.len() as u32 - 1;
    }
    (rank, firsts)
}

fn compare(a: &[f64], b: &[f64]) -> Ordering {
    a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
