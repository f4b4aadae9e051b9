//! Models from functions are those from arrays, bit for bit, whatever the number of threads; what is wrong with a function is told with
//! state and action.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::Error;
use coirl::model::{Cmdp, Criterion, Features, Kernel, Pairs, SparseRows};
use coirl::random::stream;
use rand::RngExt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Random successors in any order, some of them twice or with probability zero, and now and then an action that cannot be taken.
fn random_row(n_states: usize) -> impl Fn(usize, usize) -> Vec<(usize, f64)> + Sync {
    move |state, action| {
        let mut rng = stream(7, "row", (state * 3 + action) as u64);
        if action > 0 && rng.random::<f64>() < 0.2 {
            return Vec::new();
        }
        // Every seventh state has the same row for all actions, which is kept once.
        let mut rng = if state.is_multiple_of(7) { stream(8, "row", state as u64) } else { rng };
        let p: Vec<f64> = (0..4).map(|i| if i == 2 { 0.0 } else { rng.random::<f64>() + 0.1 }).collect();
        let sum: f64 = p.iter().sum();
        p.iter().map(|p| (rng.random_range(0..n_states), p / sum)).collect()
    }
}

fn on_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

#[test]
fn the_kernel_is_that_of_the_arrays_on_any_number_of_threads() {
    // Fewer states than a block, as many, and more than a wave of them.
    for n in [1, 5, 256, 257, 40_000] {
        let row = random_row(n);
        let (mut starts, mut next, mut p, mut mask) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        for (state, action) in (0..n).flat_map(|s| (0..3).map(move |a| (s, a))) {
            let entries = row(state, action);
            mask.push(!entries.is_empty());
            next.extend(entries.iter().map(|entry| entry.0 as i64));
            p.extend(entries.iter().map(|entry| entry.1));
            starts.push(next.len());
        }
        let expected = Kernel::from_csr(n, 3, &starts, &next, &p, Some(&mask)).unwrap();
        for threads in [1, 2, 7] {
            let found = on_threads(threads, || Kernel::from_fn(n, 3, &row)).unwrap();
            assert!(found == expected, "{n} states, {threads} threads");
            assert_eq!(found.n_rows(), expected.n_rows());
        }
    }
}

#[test]
fn features_are_those_of_the_arrays_on_any_number_of_threads() {
    let kernel = Kernel::from_fn(30_000, 3, random_row(30_000)).unwrap();
    let pairs = kernel.pairs();
    let row = |state: usize, action: usize| [state as f64, 0.0, if action == 1 { -0.5 } else { 0.0 }];
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for pair in 0..pairs.len() {
        let entries = row(pairs.state(pair).index(), pairs.action(pair).index());
        for (j, x) in entries.into_iter().enumerate().filter(|entry| entry.1 != 0.0) {
            columns.push(j as u32);
            values.push(x);
        }
        starts.push(columns.len());
    }
    let expected = Features::per_pair(pairs, SparseRows::new(3, starts, columns, values).unwrap()).unwrap();
    for threads in [1, 3] {
        assert!(on_threads(threads, || Features::from_fn(pairs, row)).unwrap() == expected, "{threads} threads");
    }
}

#[test]
fn every_pair_is_asked_for_once() {
    let calls = AtomicUsize::new(0);
    let stay = |state: usize, _: usize| {
        calls.fetch_add(1, Ordering::Relaxed);
        Some((state, 1.0))
    };
    let _ = Kernel::from_fn(1000, 4, stay).unwrap();
    assert_eq!(calls.into_inner(), 4000);
}

#[test]
fn a_model_starts_anywhere_and_has_features_of_the_pairs_that_can_be_taken() {
    let transition = |state: usize, action: usize| (action == 0 || state > 0).then_some((state / 2, 1.0));
    let model =
        Cmdp::from_fn(4, 2, transition, |s, a| [s as f64, a as f64], Criterion::discounted(0.5).unwrap()).unwrap();
    assert_eq!(model.initial(), [0.25; 4]);
    assert_eq!(model.pairs().len(), 7);
    assert_eq!(model.pairs().find(0, 1), None);
    let Features::StateAction(rows) = model.features() else { panic!("features of pairs") };
    assert_eq!(rows.n_rows(), 7);
    assert_eq!(rows.row(model.pairs().find(3, 1).unwrap()).collect::<Vec<_>>(), [(0, 3.0), (1, 1.0)]);
}

#[test]
fn what_is_wrong_is_told_with_state_and_action() {
    // In a later wave, so that others were appended before it.
    let at = |row: Vec<(usize, f64)>| {
        move |s: usize, a: usize| if (s, a) == (39_000, 1) { row.clone() } else { vec![(s, 1.0)] }
    };
    let refused = |row: Vec<(usize, f64)>| Kernel::from_fn(40_000, 2, at(row)).unwrap_err();
    assert!(matches!(
        refused(vec![(0, 0.5), (3, f64::NAN)]),
        Error::InvalidProbability { state: 39_000, action: 1, next: 3, value } if value.is_nan()
    ));
    assert!(matches!(
        refused(vec![(0, 1.5), (1, -0.5)]),
        Error::InvalidProbability { state: 39_000, action: 1, next: 0, .. }
    ));
    assert!(matches!(
        refused(vec![(1, -0.5), (0, 1.5)]),
        Error::InvalidProbability { state: 39_000, action: 1, next: 1, value: -0.5 }
    ));
    assert!(matches!(
        refused(vec![(40_000, 1.0)]),
        Error::SuccessorOutOfRange { state: 39_000, action: 1, next: 40_000, n_states: 40_000 }
    ));
    assert!(matches!(refused(vec![(usize::MAX, 1.0)]), Error::SuccessorOutOfRange { next: i64::MAX, .. }));
    assert!(matches!(
        refused(vec![(0, 0.4), (1, 0.4)]),
        Error::RowNotStochastic { state: 39_000, action: 1, sum: 0.8 }
    ));
    // A row of zeros is a row that does not sum to one, and no way to say that an action cannot be taken.
    assert!(matches!(refused(vec![(0, 0.0)]), Error::RowNotStochastic { state: 39_000, action: 1, sum: 0.0 }));
    assert!(Kernel::from_fn(40_000, 2, at(Vec::new())).is_ok());
    let nothing = |s: usize, _: usize| if s == 300 { vec![] } else { vec![(s, 1.0)] };
    assert!(matches!(Kernel::from_fn(400, 2, nothing), Err(Error::NoAdmissibleAction { state: 300 })));
    assert!(matches!(Kernel::from_fn(0, 2, nothing), Err(Error::EmptyModel { .. })));
    assert!(matches!(Kernel::from_fn(usize::MAX, 2, nothing), Err(Error::TooLarge { .. })));
}

#[test]
fn the_first_failure_in_order_is_the_one_that_is_told() {
    let fails = |state: usize, action: usize| match (state, action) {
        (20_000.., _) => Err("too far".to_string()),
        (777, 1) => Err("here".to_string()),
        _ => Ok([(state, 1.0)]),
    };
    for threads in [1, 2, 5] {
        let error = on_threads(threads, || Kernel::try_from_fn(30_000, 2, fails)).unwrap_err();
        assert_eq!(error.to_string(), "state 777, action 1: here");
        assert!(matches!(error, Error::PairFunction { state: 777, action: 1, .. }));
    }
}

#[test]
fn features_that_are_none_are_refused() {
    let pairs = Pairs::all(1000, 2).unwrap();
    let refused = |row: &(dyn Fn(usize, usize) -> Vec<f64> + Sync)| Features::from_fn(&pairs, row).unwrap_err();
    let error = refused(&|s, a| vec![1.0, if (s, a) == (900, 1) { f64::INFINITY } else { 0.0 }]);
    assert_eq!(error.to_string(), "state 900, action 1: feature 1 is inf; expected a finite number");
    let error = refused(&|s, _| vec![1.0; if s == 512 { 3 } else { 2 }]);
    assert_eq!(error.to_string(), "state 512, action 0: 3 features; expected 2, as the first pair has");
    assert!(matches!(refused(&|_, _| Vec::new()), Error::Shape { what: "features", .. }));
}
