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
    for n in [20, 80] {
        let outcomes: Vec<Outcome> = (0..3).into_par_iter().map(|seed| run(&model, n, seed).unwrap()).collect();
        let (planned, improved) = (mean(&outcomes, |o| 100.0 * o.planned), mean(&outcomes, |o| 100.0 * o.improved));
        assert!((planned - improved).abs() <= 0.1, "{n} contexts: {improved} of {planned}");
        assert!(planned >= 95.0, "{n} contexts: {planned}");
        for outcome in &outcomes {
            // What a backup says is true, and starting there saves most of the sweeps.
            assert!(outcome.largest_gap <= outcome.largest_bound, "{outcome:?}");
            assert!(10 * outcome.sweeps.1 <= outcome.sweeps.0, "{outcome:?}");
        }
    }
}
