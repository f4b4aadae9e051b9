//! Nothing invalid can be constructed: each kind of nonsense has its own error, with the place and the value.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::Error;
use coirl::model::{
    Clusters, Cmdp, ContextSpace, Criterion, Dynamics, Features, Kernel, Mixture, Names, Pairs, Reward, SparseRows,
};
use coirl::plan::{Limits, ManyOptions, Method, Planner, Policy, Start, evaluate};
use std::ops::ControlFlow;

/// Two states, two actions; entry [1][1] is replaced.
fn kernel_with(row: [f64; 2]) -> coirl::Result<Kernel> {
    Kernel::from_dense(2, 2, &[1.0, 0.0, 0.0, 1.0, 0.5, 0.5, row[0], row[1]], None)
}

fn kernel() -> Kernel {
    kernel_with([0.25, 0.75]).unwrap()
}

fn features() -> Features {
    Features::per_state(2, 1, vec![0.0, 1.0]).unwrap()
}

fn model(criterion: Criterion) -> coirl::Result<Cmdp> {
    Cmdp::new(Dynamics::Shared(kernel()), features(), vec![1.0, 0.0], criterion)
}

#[test]
fn rows() {
    let error = kernel_with([0.25, 0.7]).unwrap_err();
    assert!(
        matches!(error, Error::RowNotStochastic { state: 1, action: 1, sum } if (sum - 0.95).abs() < 1e-12),
        "{error}"
    );
    assert_eq!(error.to_string(), "state 1, action 1: the transition probabilities sum to 0.95; expected 1");
    let error = kernel_with([-0.25, 1.25]).unwrap_err();
    assert!(matches!(error, Error::InvalidProbability { state: 1, action: 1, next: 0, value: -0.25 }), "{error}");
    let error = kernel_with([f64::NAN, 1.0]).unwrap_err();
    assert!(matches!(error, Error::InvalidProbability { next: 0, value, .. } if value.is_nan()), "{error}");
    let error = kernel_with([f64::INFINITY, 1.0]).unwrap_err();
    assert!(matches!(error, Error::InvalidProbability { .. }), "{error}");
    let error = kernel_with([0.0, 0.0]).unwrap_err();
    assert!(matches!(error, Error::RowNotStochastic { sum: 0.0, .. }), "{error}");
}

#[test]
fn successors_and_row_starts() {
    let csr = |next: &[i64], starts: &[usize]| Kernel::from_csr(2, 1, starts, next, &vec![1.0; next.len()], None);
    assert!(csr(&[1, 0], &[0, 1, 2]).is_ok());
    let error = csr(&[2, 0], &[0, 1, 2]).unwrap_err();
    assert!(matches!(error, Error::SuccessorOutOfRange { state: 0, action: 0, next: 2, n_states: 2 }), "{error}");
    let error = csr(&[0, -1], &[0, 1, 2]).unwrap_err();
    assert!(matches!(error, Error::SuccessorOutOfRange { state: 1, next: -1, .. }), "{error}");
    for starts in [vec![0, 2, 1], vec![0, 1], vec![1, 1, 2], vec![0, 1, 3]] {
        assert!(matches!(csr(&[1, 0], &starts).unwrap_err(), Error::Shape { what: "indptr", .. }), "{starts:?}");
    }
    assert!(matches!(Kernel::from_dense(2, 2, &[1.0; 7], None).unwrap_err(), Error::Shape { what: "transitions", .. }));
}

#[test]
fn unsorted_and_repeated_entries_add_up() {
    let kernel =
        Kernel::from_csr(3, 1, &[0, 4, 5, 6], &[2, 0, 2, 1, 1, 2], &[0.25, 0.5, 0.25, 0.0, 1.0, 1.0], None).unwrap();
    assert_eq!(kernel.successors(0).collect::<Vec<_>>(), [(0, 0.5), (2, 0.5)]);
    assert_eq!(kernel.n_entries(), 4);
}

#[test]
fn equal_rows_are_stored_once_and_actions_keep_their_numbers() {
    let row = [0.5, 0.5];
    let transitions = [row, row, [1.0, 0.0], row, row, row].concat();
    let kernel = Kernel::from_dense(2, 3, &transitions, Some(&[true, true, true, false, true, true])).unwrap();
    assert_eq!((kernel.n_rows(), kernel.n_entries()), (3, 5));
    assert_eq!(kernel.pairs().len(), 5);
    let model =
        Cmdp::new(Dynamics::Shared(kernel), features(), vec![0.5, 0.5], Criterion::discounted(0.9).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let plan = Planner::default().plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap();
    let actions: Vec<u32> = plan.policy.actions().unwrap().iter().map(|a| a.0).collect();
    assert_eq!(actions, [0, 1], "the lowest admissible action of each group of equals");
}

#[test]
fn action_sets_and_sizes() {
    let error = Pairs::from_mask(2, 2, &[true, false, false, false]).unwrap_err();
    assert!(matches!(error, Error::NoAdmissibleAction { state: 1 }), "{error}");
    assert!(matches!(Pairs::all(0, 3).unwrap_err(), Error::EmptyModel { n_states: 0, n_actions: 3 }));
    assert!(matches!(Pairs::all(3, 0).unwrap_err(), Error::EmptyModel { .. }));
    assert!(matches!(Pairs::all(1 << 40, 1).unwrap_err(), Error::TooLarge { .. }));
    assert!(matches!(Pairs::all(usize::MAX, 2).unwrap_err(), Error::TooLarge { .. }));
}

#[test]
fn discounts() {
    for value in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let error = Criterion::discounted(value).unwrap_err();
        assert!(matches!(error, Error::InvalidDiscount { .. }), "{error}");
        assert!(Criterion::finite_horizon(3, value).is_err());
    }
    assert!(matches!(Criterion::finite_horizon(0, 0.5).unwrap_err(), Error::InvalidHorizon { steps: 0 }));
    assert!(matches!(model(Criterion::Discounted { discount: 1.0 }).unwrap_err(), Error::InvalidDiscount { .. }));
    assert!(model(Criterion::finite_horizon(3, 1.0).unwrap()).is_ok());
}

#[test]
fn discount_one_needs_absorption_and_zero_features() {
    // State 0 can stay for ever under action 0.
    let error = model(Criterion::discounted(1.0).unwrap()).unwrap_err();
    assert!(matches!(error, Error::ImproperPolicy { .. }), "{error}");
    let absorbing = Kernel::from_dense(2, 1, &[0.5, 0.5, 0.0, 1.0], None).unwrap();
    let build = |features| {
        Cmdp::new(Dynamics::Shared(absorbing.clone()), features, vec![1.0, 0.0], Criterion::discounted(1.0).unwrap())
    };
    let error = build(features()).unwrap_err();
    assert!(matches!(error, Error::AbsorbingFeature { state: 1, feature: 0, value: 1.0 }), "{error}");
    assert!(build(Features::per_state(2, 1, vec![1.0, 0.0]).unwrap()).is_ok());
    // Two states that pass to each other are not absorbing, and never absorbed.
    let circle = Kernel::from_dense(2, 1, &[0.0, 1.0, 1.0, 0.0], None).unwrap();
    let zero = Features::per_state(2, 1, vec![0.0, 0.0]).unwrap();
    let error = Cmdp::new(Dynamics::Shared(circle), zero, vec![1.0, 0.0], Criterion::TotalReward).unwrap_err();
    assert!(matches!(error, Error::ImproperPolicy { state: 0 }), "{error}");
}

#[test]
fn features_starts_and_names() {
    assert!(matches!(Features::per_state(2, 1, vec![0.0, f64::NAN]).unwrap_err(), Error::NotFinite { index: 1, .. }));
    assert!(matches!(Features::per_state(2, 0, vec![]).unwrap_err(), Error::Shape { .. }));
    assert!(matches!(SparseRows::new(2, vec![0, 1], vec![2], vec![1.0]).unwrap_err(), Error::Shape { .. }));
    let gamma = Criterion::discounted(0.9).unwrap();
    let build = |features, initial| Cmdp::new(Dynamics::Shared(kernel()), features, initial, gamma);
    let three = Features::per_state(3, 1, vec![0.0; 3]).unwrap();
    assert!(matches!(build(three, vec![1.0, 0.0]).unwrap_err(), Error::Shape { .. }));
    assert!(matches!(build(features(), vec![1.0]).unwrap_err(), Error::Shape { what: "initial", .. }));
    assert!(matches!(build(features(), vec![0.5, 0.4]).unwrap_err(), Error::InitialNotStochastic { .. }));
    assert!(matches!(build(features(), vec![1.5, -0.5]).unwrap_err(), Error::InvalidInitial { state: 0, value: 1.5 }));
    assert!(matches!(build(features(), vec![1.0, f64::NAN]).unwrap_err(), Error::InvalidInitial { state: 1, .. }));
    let names = Names { actions: vec!["only one".into()], ..Names::default() };
    assert!(build(features(), vec![1.0, 0.0]).unwrap().with_names(names).is_err());
}

#[test]
fn contexts() {
    let simplex = ContextSpace::Simplex { dimension: 2 };
    assert!(simplex.context([0.5, 0.5]).is_ok());
    for bad in [vec![0.5], vec![0.5, 0.6], vec![-0.1, 1.1], vec![f64::NAN, 1.0], vec![]] {
        assert!(matches!(simplex.context(bad.clone()).unwrap_err(), Error::InvalidContext { .. }), "{bad:?}");
    }
    let boxed = ContextSpace::Box { lower: vec![0.0], upper: vec![1.0] };
    assert!(boxed.context([1.0]).is_ok() && boxed.context([1.1]).is_err());
}

#[test]
fn dynamics() {
    let other = Kernel::from_dense(2, 1, &[1.0, 0.0, 0.0, 1.0], None).unwrap();
    assert!(matches!(
        Mixture::new(&[kernel(), other.clone()]).unwrap_err(),
        Error::IncompatibleKernels { kernel: 1, .. }
    ));
    assert!(Mixture::new(&[]).is_err());
    assert!(Clusters::new(vec![kernel()], vec![]).is_err());
    assert!(Clusters::new(vec![kernel(), other], vec![vec![0.0], vec![1.0]]).is_err());
    let mixture = Mixture::new(&[kernel(), kernel_with([0.0, 1.0]).unwrap()]).unwrap();
    let gamma = Criterion::discounted(0.9).unwrap();
    let model = Cmdp::new(Dynamics::Mixture(mixture), features(), vec![1.0, 0.0], gamma).unwrap();
    assert!(matches!(model.shared_mdp().unwrap_err(), Error::ContextNeeded));
    let context = model.context_space().context([0.5, 0.5]).unwrap();
    let mdp = model.mdp(&context).unwrap();
    assert_eq!(mdp.kernel().successors(3).collect::<Vec<_>>(), [(0, 0.125), (1, 0.875)]);
    assert!(model.clone().with_context_space(ContextSpace::Any).is_err());
}

#[test]
fn plans() {
    let model = model(Criterion::discounted(0.9).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    assert!(matches!(mdp.reward(&[1.0, 2.0]).unwrap_err(), Error::Shape { what: "weights", .. }));
    assert!(matches!(mdp.reward(&[f64::NAN]).unwrap_err(), Error::NotFinite { what: "weights", index: 0, .. }));
    let reward = mdp.reward(&[1.0]).unwrap();
    for tolerance in [0.0, -1.0, f64::NAN] {
        let planner = Planner::to_tolerance(Method::Automatic, tolerance);
        assert!(matches!(planner.plan(&mdp, &reward).unwrap_err(), Error::InvalidSetting { name: "tolerance", .. }));
    }
    let idle = Planner { limits: Limits { max_sweeps: 0 }, ..Planner::default() };
    assert!(matches!(idle.plan(&mdp, &reward).unwrap_err(), Error::InvalidSetting { name: "max_sweeps", .. }));
    let short = Reward::State(vec![1.0]);
    assert!(matches!(Planner::default().plan(&mdp, &short).unwrap_err(), Error::Shape { .. }));
    let nan = Reward::State(vec![f64::NAN, 0.0]);
    assert!(matches!(Planner::default().plan(&mdp, &nan).unwrap_err(), Error::NotFinite { .. }));
    let planner = Planner::default();
    assert!(planner.plan_from(&mdp, &reward, Start::Values(&[0.0])).is_err());
    let policy = Policy::Stationary(vec![coirl::model::ActionId(7); 2]);
    assert!(matches!(
        evaluate::values(&mdp, &reward, &policy).unwrap_err(),
        Error::ActionNotAdmissible { state: 0, action: 7 }
    ));
    assert!(planner.plan_many(&mdp, &[f64::NAN], ManyOptions::default(), |_| ControlFlow::Continue(())).is_err());
    let stopped = planner.plan_many(&mdp, &[1.0; 50], ManyOptions::default(), |plan| {
        if plan.index == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped.unwrap_err(), Error::Interrupted { done: 21, total: 50 }));
}
