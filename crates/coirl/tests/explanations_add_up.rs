//! Contributions add up to what they explain: the reward, the value, and what an action is better by than its runner-up.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::domains::{Driving, Garnet};
use coirl::inspect::{Contributions, Terms};
use coirl::mapping::LinearMapping;
use coirl::model::{ActionId, Cmdp, Context, StateId};
use coirl::plan::{Planner, evaluate};
use proptest::prelude::*;
use random_models::{brute_force_values, largest, sketches};

const D: usize = 2;
const K: usize = 3;

/// Every identity of the contributions in one context, taken apart by fields and undivided.
fn adds_up(model: &Cmdp, mapping: &LinearMapping, context: &Context, optimal: Option<&[f64]>) {
    let undivided = Contributions::undivided(model, mapping, context).unwrap();
    assert_eq!(undivided.weights().rows().len(), 1);
    for found in [Contributions::new(model, mapping, context).unwrap(), undivided] {
        contributions_add_up(&found, model, mapping, context, optimal);
    }
}

/// The same of one of them, against values from elsewhere.
fn contributions_add_up(
    found: &Contributions<'_>,
    model: &Cmdp,
    mapping: &LinearMapping,
    context: &Context,
    optimal: Option<&[f64]>,
) {
    let mdp = model.mdp(context).unwrap();
    let weights = mapping.weights(context).unwrap();
    let reward = mdp.reward(&weights).unwrap();
    let plan = Planner::default().plan(&mdp, &reward).unwrap();
    let values = optimal.unwrap_or(&plan.values);
    let scale = 1.0 + largest(values);
    let close = |terms: &Terms, expected: f64| {
        let error = (terms.total() - expected).abs();
        assert!(error <= 1e-7 * scale, "{} is not {expected}", terms.total());
        let rows: f64 = terms.of_fields().iter().sum();
        assert!((rows - terms.total()).abs() <= 1e-9 * scale);
    };
    found.weights().of_features().iter().zip(&weights).for_each(|(sum, w)| assert!((sum - w).abs() < 1e-12));
    let start: f64 = mdp.initial().iter().zip(values).map(|(p, v)| p * v).sum();
    close(&found.value().unwrap(), start);
    let q = evaluate::q_values(&mdp, &reward, values).unwrap();
    for s in 0..mdp.n_states() {
        let state = StateId(s as u32);
        for pair in mdp.pairs().of_state(s) {
            close(&found.reward(state, mdp.pairs().action(pair)).unwrap(), reward.at(s, pair));
        }
        let Some(choice) = found.choice(state).unwrap() else {
            assert_eq!(mdp.pairs().of_state(s).len(), 1);
            continue;
        };
        let of = |action: ActionId| q[mdp.pairs().find(s, action.index()).unwrap()];
        close(&choice.terms, of(choice.action) - of(choice.runner_up));
        assert!((choice.difference - choice.terms.total()).abs() <= 1e-7 * scale);
        // Nothing beats the choice, and nothing but the choice beats the runner-up.
        let others = mdp.pairs().of_state(s).filter(|&pair| mdp.pairs().action(pair) != choice.action);
        let second = others.map(|pair| q[pair]).fold(f64::NEG_INFINITY, f64::max);
        assert!((of(choice.runner_up) - second).abs() <= 1e-7 * scale && of(choice.action) >= second - 1e-7 * scale);
        assert!(choice.action != choice.runner_up);
        assert_eq!(choice.tied, choice.difference <= 1e-9 * largest(&q), "state {s}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// On small random models, with the optimal values from brute force over all policies.
    #[test]
    fn on_random_models(sketch in sketches(5, 3), entries in prop::collection::vec(-1.0..1.0_f64, D * K), c in -1.0..2.0_f64) {
        prop_assume!(sketch.discount <= 0.99);
        let model = sketch.model();
        let context = model.context_space().context([c, 1.0 - c]).unwrap();
        let mapping = LinearMapping::new(D, K, entries).unwrap();
        let mdp = model.mdp(&context).unwrap();
        let optimal = brute_force_values(&mdp, &mdp.reward(&mapping.weights(&context).unwrap()).unwrap());
        adds_up(&model, &mapping, &context, Some(&optimal));
    }
}

#[test]
fn where_the_dynamics_follow_the_context() {
    let garnet = Garnet { n_states: 20, n_actions: 3, n_features: 4, n_kernels: 3, seed: 5, ..Garnet::default() };
    let model = garnet.build().unwrap();
    let mapping = LinearMapping::new(3, 4, (0..12).map(|i| f64::from(i * 7 % 12) - 5.0).collect()).unwrap();
    let context = model.context_space().context([0.2, 0.5, 0.3]).unwrap();
    adds_up(&model, &mapping, &context, None);
}

#[test]
fn on_the_road() {
    let model = Driving::default().build().unwrap();
    let context = model.context_space().context([0.2, 0.5, 0.3]).unwrap();
    adds_up(&model, &Driving::online_mapping(), &context, None);
}

#[test]
fn places_that_do_not_exist_are_refused() {
    let model = Driving::default().build().unwrap();
    let context = model.context_space().context([0.2, 0.5, 0.3]).unwrap();
    let found = Contributions::new(&model, &Driving::online_mapping(), &context).unwrap();
    assert!(found.choice(StateId(1_000_000)).is_err());
    assert!(found.reward(StateId(0), ActionId(99)).is_err());
    assert_eq!(found.usual_start(), StateId(0));
    let narrow = LinearMapping::new(3, 2, vec![0.0; 6]).unwrap();
    assert!(Contributions::new(&model, &narrow, &context).is_err());
}
