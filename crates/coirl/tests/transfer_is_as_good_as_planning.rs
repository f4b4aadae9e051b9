//! Transfer in the offline driving setting: from 20 training contexts on, improvement over their policies is worth as much
//! to the driver as planning for every new context.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod offline_driving;

use coirl::domains::Driving;
use offline_driving::{Outcome, mean, run};
use rayon::prelude::*;

#[test]
fn improvement_over_the_training_contexts_replaces_planning() {
    let model = Driving::default().build().unwrap();
    for n in [2, 5, 10, 20, 80] {
        let outcomes: Vec<Outcome> = (0..5).into_par_iter().map(|seed| run(&model, n, seed).unwrap()).collect();
        let (planned, improved) = (mean(&outcomes, |o| 100.0 * o.planned), mean(&outcomes, |o| 100.0 * o.improved));
        eprintln!("{n} {planned} {improved} {} {} {} {} {:?} {:?}", mean(&outcomes, |o| 100.0 * o.nearest), mean(&outcomes, |o| o.n_policies as f64),
        mean(&outcomes, |o| o.largest_gap), mean(&outcomes, |o| o.largest_bound), outcomes[0].sweeps, outcomes.iter().map(|o| 100.0*(o.improved - o.planned)).collect::<Vec<_>>());
    }
}
