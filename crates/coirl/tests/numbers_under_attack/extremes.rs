//! Models and numbers from the ends of what a double can say.

use coirl::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, Reward};
use rand::{Rng, RngExt};

/// The smallest subnormal.
pub(crate) const TINIEST: f64 = f64::from_bits(1);

/// Numbers that are allowed and seldom met.
pub(crate) const NUMBERS: [f64; 16] =
    [0.0, -0.0, 1.0, -1.0, 0.5, 1e-310, -1e-310, TINIEST, 1e-300, 1e-160, 1e8, 1e150, -1e150, 1e300, -1e300, 1e308];

/// Numbers that no array may hold.
pub(crate) const NONSENSE: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// Discounts up to the last before one.
pub(crate) fn discounts() -> [f64; 9] {
    [0.0, TINIEST, 0.5, 0.9, 0.999, 1.0 - 1e-6, 1.0 - 1e-9, 1.0 - 1e-12, 1.0_f64.next_down()]
}

pub(crate) fn one_of<T: Copy>(all: &[T], random: &mut impl Rng) -> T {
    all[random.random_range(0..all.len())]
}

/// Numbers of one kind, as rewards, features or weights: extremes mixed, one of them everywhere, or ordinary ones times an extreme.
pub(crate) fn numbers(n: usize, random: &mut impl Rng) -> Vec<f64> {
    let size = one_of(&NUMBERS, random);
    match random.random_range(0..5) {
        0 => (0..n).map(|_| one_of(&NUMBERS, random)).collect(),
        1 => vec![size; n],
        2 => (0..n).map(|_| size * random.random_range(-1.0..1.0)).collect(),
        _ => (0..n).map(|_| random.random_range(-1.0..1.0)).collect(),
    }
}

/// A distribution: certain, even, or with entries that hardly count; it sums to one as well as its own rounding lets it.
pub(crate) fn distribution(n: usize, random: &mut impl Rng) -> Vec<f64> {
    let mut row = match random.random_range(0..5) {
        0 => vec![0.0; n],
        1 => vec![1.0 / n as f64; n],
        2 => vec![one_of(&[1e-310, TINIEST, 1e-17, 1e-300, -0.0], random); n],
        _ => (0..n).map(|_| random.random_range(0.0..1.0)).collect(),
    };
    let certain = random.random_range(0..n);
    let others: f64 = (0..n).filter(|&i| i != certain).map(|i| row[i]).sum();
    if others < 1.0 && random.random_bool(0.5) {
        row[certain] = 1.0 - others;
    } else {
        row[certain] += 1e-3;
        let sum: f64 = row.iter().sum();
        // Some rows are off by as much as is let pass without a word.
        let off = one_of(&[0.0, 0.0, 0.0, 4e-16, -4e-16, 9e-13, -9e-13], random);
        row.iter_mut().for_each(|p| *p *= (1.0 + off) / sum);
    }
    row
}

/// How a small model is built.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    pub(crate) n_states: usize,
    pub(crate) n_actions: usize,
    pub(crate) transitions: Vec<f64>,
    pub(crate) initial: Vec<f64>,
}

impl Sketch {
    /// Up to four states and three actions; some states absorb, sometimes all.
    pub(crate) fn random(random: &mut impl Rng) -> Self {
        let (n_states, n_actions) = (random.random_range(1..=4), random.random_range(1..=3));
        let absorbing = one_of(&[0.0, 0.2, 1.0], random);
        let mut transitions = Vec::new();
        for s in 0..n_states {
            let stays = random.random_bool(absorbing);
            for _ in 0..n_actions {
                if stays {
                    transitions.extend((0..n_states).map(|t| f64::from(u8::from(t == s))));
                } else {
                    transitions.extend(distribution(n_states, random));
                }
            }
        }
        Self { n_states, n_actions, transitions, initial: distribution(n_states, random) }
    }

    /// The same, with the last state absorbing and reached from everywhere under every action.
    pub(crate) fn absorbed(mut self, random: &mut impl Rng) -> Self {
        let last = self.n_states - 1;
        for (row, p) in self.transitions.chunks_exact_mut(self.n_states).enumerate() {
            let share = if row / self.n_actions == last { 1.0 } else { one_of(&[0.5, 1e-3, 1e-9], random) };
            p.iter_mut().for_each(|p| *p *= 1.0 - share);
            p[last] += share;
        }
        self
    }

    /// The same, with a way back to the first state from everywhere: every policy is unichain.
    pub(crate) fn returning(mut self, random: &mut impl Rng) -> Self {
        for p in self.transitions.chunks_exact_mut(self.n_states) {
            let share = one_of(&[0.5, 0.1, 1e-3], random);
            p.iter_mut().for_each(|p| *p *= 1.0 - share);
            p[0] += share;
        }
        self
    }

    pub(crate) fn kernel(&self) -> coirl::Result<Kernel> {
        Kernel::from_dense(self.n_states, self.n_actions, &self.transitions, None)
    }

    /// One feature per column of `features`, a row per state.
    pub(crate) fn model(&self, features: Vec<f64>, criterion: Criterion) -> coirl::Result<Cmdp> {
        let k = features.len() / self.n_states;
        let features = Features::per_state(self.n_states, k, features)?;
        Cmdp::new(Dynamics::Shared(self.kernel()?), features, self.initial.clone(), criterion)
    }

    /// The model without features that count, for rewards given outright.
    pub(crate) fn bare(&self, criterion: Criterion) -> coirl::Result<Cmdp> {
        self.model(vec![0.0; self.n_states], criterion)
    }

    pub(crate) fn reward(&self, random: &mut impl Rng) -> Reward {
        if random.random_bool(0.5) {
            Reward::State(numbers(self.n_states, random))
        } else {
            Reward::Pair(numbers(self.n_states * self.n_actions, random))
        }
    }
}

/// Contexts of a simplex: corners, the middle, the same again, and with entries that hardly count.
pub(crate) fn contexts(dimension: usize, n: usize, random: &mut impl Rng) -> Vec<Vec<f64>> {
    let kind = random.random_range(0..4);
    let corner = |i: usize| (0..dimension).map(|j| f64::from(u8::from(i % dimension == j))).collect::<Vec<f64>>();
    let fixed = distribution(dimension, random);
    (0..n)
        .map(|i| match kind {
            0 => corner(i),
            1 => fixed.clone(),
            2 => corner(0),
            _ => distribution(dimension, random),
        })
        .collect()
}

pub(crate) fn simplex(dimension: usize) -> ContextSpace {
    ContextSpace::Simplex { dimension }
}
