//! Long use costs nothing: fits in sequence leave no memory behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod demonstrated;
mod effort;

use coirl::demos::Estimator;
use coirl::domains::Garnet;
use coirl::learn::{Adaptive, Bundle, MirrorDescent, Neural, Problem, Stop, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::ContextSpace;
use demonstrated::{exact, signed_point, train};
use effort::{Tally, effort};

/// What a process may keep between two fits: arenas of the allocator for each of its threads.
const KEPT_BYTES: f64 = 8e6;

/// Bytes of this process that are in memory.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

#[test]
fn fits_in_sequence_leave_nothing_behind() {
    let mut tally = Tally::new("fits in sequence", "fits");
    let garnet = Garnet { n_states: 60, n_features: 4, seed: 5, ..Garnet::default() };
    let model = garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 3 }).unwrap();
    let contexts = model.context_space().sample(12, 4).unwrap();
    let demonstrations = exact(&model, &LinearMapping::new(3, 4, signed_point(12, 9)).unwrap(), &contexts);
    let problem = Problem::new(&model, &train(&demonstrations, 12), &Estimator::ControlVariate).unwrap();
    let methods = [
        Method::Adaptive(Adaptive::default()),
        Method::MirrorDescent(MirrorDescent::default()),
        Method::Bundle(Bundle::default()),
        Method::Neural(Neural { objective: coirl::objective::ObjectiveChoice::Loss, ..Neural::default() }),
    ];
    let run = |i: u64| {
        let method = methods[i as usize % methods.len()].clone();
        let settings =
            Settings { seed: i, stop: Stop { max_steps: Some(6), ..Stop::default() }, ..Settings::new(method) };
        let _ = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
    };
    let n = effort(1000);
    (0..n / 4).for_each(run);
    let before = resident();
    (n / 4..n).for_each(run);
    let grown = resident() - before;
    tally.tried(n);
    tally.largest("growth in MB", grown / 1e6);
    assert!(grown < KEPT_BYTES, "{n} fits left {grown} bytes behind");
}
