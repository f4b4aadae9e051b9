//! A hub with rooms around it, whose answers are known by hand: in the hub one chooses a room, in a room one goes back.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test
#![allow(dead_code)] // each test uses its own part

use coirl::model::{Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel};

/// State 0 is the hub; action a leads to room a, which is state a + 1 and has these features. One action leads back.
pub(crate) fn rooms(features: &[Vec<f64>], dimension: usize) -> Cmdp {
    let (n, k) = (features.len() + 1, features[0].len());
    let n_actions = features.len();
    let mut transitions = vec![0.0; n * n_actions * n];
    let mut admissible = vec![false; n * n_actions];
    for a in 0..n_actions {
        transitions[a * n + a + 1] = 1.0;
        admissible[a] = true;
        transitions[((a + 1) * n_actions) * n] = 1.0;
        admissible[(a + 1) * n_actions] = true;
    }
    let kernel = Kernel::from_dense(n, n_actions, &transitions, Some(&admissible)).unwrap();
    let values = [vec![0.0; k], features.concat()].concat();
    let mut initial = vec![0.0; n];
    initial[0] = 1.0;
    let features = Features::per_state(n, k, values).unwrap();
    Cmdp::new(Dynamics::Shared(kernel), features, initial, Criterion::discounted(0.5).unwrap())
        .unwrap()
        .with_context_space(ContextSpace::Simplex { dimension })
        .unwrap()
}

/// n directions of the plane, the first to the right.
pub(crate) fn circle(n: usize) -> Vec<Vec<f64>> {
    let angle = |i: usize| std::f64::consts::TAU * i as f64 / n as f64;
    (0..n).map(|i| vec![angle(i).cos(), angle(i).sin()]).collect()
}
