//! Lemma 1 and Theorems 1 and 2 as properties over random contextual models with exact demonstrations.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::demos::Estimator;
use coirl::domains::Garnet;
use coirl::learn::{
    Average, Batch, EvolutionStep, EvolutionStrategies, EvolutionTheorem, Geometry, MirrorDescent, Policies, Problem,
    Region, StepSize, Watch,
};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, Context, ContextSpace};
use coirl::optim::Perturbation;
use demonstrated::{exact, signed_point, simplex_point, train};
use proptest::prelude::*;

const D: usize = 3;
const K: usize = 3;

/// A small model over the simplex: shared or mixed dynamics, some actions inadmissible.
fn model(seed: u64) -> Cmdp {
    let garnet = Garnet {
        n_states: 3 + (seed % 8) as usize,
        n_actions: 2 + (seed % 3) as usize,
        n_successors: 1 + (seed % 3) as usize,
        n_features: K,
        n_kernels: if seed.is_multiple_of(2) { 1 } else { D },
        admissible: 0.8,
        discount: [0.0, 0.5, 0.9, 0.97][(seed % 4) as usize],
        seed,
    };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: D }).unwrap()
}

fn problem<'a>(model: &'a Cmdp, truth: &[f64], contexts: &[Context]) -> Problem<'a> {
    let truth = LinearMapping::new(D, K, truth.to_vec()).unwrap();
    let demonstrations = exact(model, &truth, contexts);
    Problem::new(model, &train(&demonstrations, contexts.len()), &Estimator::default()).unwrap()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_loss_is_what_the_lemma_says(seed in any::<u64>(), share in 0.0..1.0_f64, scale in 0.1..10.0_f64) {
        let model = model(seed);
        let contexts = model.context_space().sample(4, seed).unwrap();
        let truth = signed_point(D * K, seed);
        let problem = problem(&model, &truth, &contexts);
        let all = problem.data().all();
        let (v, w) = (signed_point(D * K, seed ^ 1), signed_point(D * K, seed ^ 2));
        let (at_v, at_w) = (problem.loss(&v, &all).unwrap(), problem.loss(&w, &all).unwrap());
        let size = problem.sum_bound().unwrap();
        let slack = 1e-9 * size;
        prop_assert!(at_v.value >= -slack && at_w.value >= -slack);
        prop_assert!(problem.loss(&truth, &all).unwrap().value.abs() <= slack);
        let between: Vec<f64> = v.iter().zip(&w).map(|(x, y)| share * x + (1.0 - share) * y).collect();
        let there = problem.loss(&between, &all).unwrap();
        prop_assert!(there.value <= share * at_v.value + (1.0 - share) * at_w.value + slack);
        let along: Vec<f64> = w.iter().zip(&v).map(|(x, y)| x - y).collect();
        prop_assert!(at_w.value >= at_v.value + dot(&at_v.subgradient, &along) - slack);
        let scaled: Vec<f64> = v.iter().map(|x| scale * x).collect();
        prop_assert!((problem.loss(&scaled, &all).unwrap().value - scale * at_v.value).abs() <= 10.0 * slack);
        // Where the policies are the same on both sides, the loss is linear between them.
        let step = 1e-6;
        let moved = |by: f64| v.iter().zip(&along).map(|(x, d)| x + by * d).collect::<Vec<f64>>();
        let (before, after) = (problem.loss(&moved(-step), &all).unwrap(), problem.loss(&moved(step), &all).unwrap());
        if before.subgradient == after.subgradient {
            let slope = (after.value - before.value) / (2.0 * step);
            prop_assert!((slope - dot(&at_v.subgradient, &along)).abs() <= 1e-6 * size.max(1.0));
        }
        // |entries of c ⊙ μ| and their sum stay below what the bounds are made of.
        let entry = problem.entry_bound().unwrap();
        prop_assert!(at_v.subgradient.iter().all(|g| g.abs() <= 2.0 * entry + slack));
        prop_assert!(at_v.subgradient.iter().map(|g| g.abs()).sum::<f64>() <= 2.0 * size + slack);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn mirror_descent_keeps_its_bound(seed in any::<u64>(), steps in 1..60_u64, ball in any::<bool>(), constant in any::<bool>()) {
        let model = model(seed);
        let contexts = model.context_space().sample(3, seed).unwrap();
        // A truth inside the set, so that the least loss is zero.
        let truth = if ball {
            let w = signed_point(D * K, seed);
            let size = dot(&w, &w).sqrt().max(1.0);
            w.iter().map(|x| x / size).collect()
        } else {
            simplex_point(D * K, seed)
        };
        let problem = problem(&model, &truth, &contexts);
        let multiplier = 1.0;
        let method = MirrorDescent {
            geometry: if ball { Geometry::Ball } else { Geometry::Simplex },
            step_size: if constant || !ball { StepSize::Constant { multiplier } } else { StepSize::Theory { multiplier } },
            average: Average::BeforeUpdate,
            batch: Batch::Full,
        };
        let mut settings = Settings::new(Method::MirrorDescent(method));
        settings.stop.max_steps = Some(steps);
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        let loss = fitted.certificate.unnormalised_loss.unwrap();
        let bound = fitted.certificate.bound.unwrap();
        prop_assert!(loss <= bound, "{loss} > {bound}");
    }
}

#[test]
fn bounds_are_kept_to_where_they_hold() {
    let model = model(2);
    let contexts = model.context_space().sample(3, 2).unwrap();
    let problem = problem(&model, &simplex_point(D * K, 2), &contexts);
    let theory = StepSize::Theory { multiplier: 1.0 };
    let bound_of = |geometry, average, batch| {
        let method = MirrorDescent { geometry, step_size: theory, average, batch };
        let mut settings = Settings::new(Method::MirrorDescent(method));
        settings.stop.max_steps = Some(4);
        fit(&problem, &settings, Watch::default(), &mut ()).unwrap().certificate.bound
    };
    assert!(bound_of(Geometry::Ball, Average::BeforeUpdate, Batch::Full).is_some());
    assert_eq!(bound_of(Geometry::Ball, Average::AfterUpdate, Batch::Full), None);
    assert_eq!(bound_of(Geometry::Ball, Average::BeforeUpdate, Batch::InOrder), None);
    assert_eq!(bound_of(Geometry::Sphere, Average::BeforeUpdate, Batch::Full), None);
    assert_eq!(bound_of(Geometry::Simplex, Average::BeforeUpdate, Batch::Full), None);
}

#[test]
fn steps_of_the_theory_do_not_look_ahead() {
    // Three steps over three contexts, with and without others that come later; near the middle of the simplex no entry is above 0.4.
    let model = model(2);
    let space = ContextSpace::Simplex { dimension: D };
    let mut contexts: Vec<Context> = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
        .into_iter()
        .map(|values| space.context(values).unwrap())
        .collect();
    let truth = signed_point(D * K, 2);
    let boxed = |contexts: &[Context]| -> (Cmdp, Vec<Context>) {
        let space = ContextSpace::Box { lower: vec![-2.0; D], upper: vec![3.0; D] };
        let again = contexts.iter().map(|context| space.context(context.values()).unwrap()).collect();
        (model.clone().with_context_space(space.clone()).unwrap(), again)
    };
    let after_three = |model: &Cmdp, contexts: &[Context], geometry| {
        let problem = problem(model, &truth, contexts);
        let mut settings = Settings::new(Method::MirrorDescent(MirrorDescent { geometry, ..MirrorDescent::default() }));
        settings.stop.max_steps = Some(3);
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        (fitted.mapping().unwrap().values().to_vec(), fitted.history.last().unwrap().step_size.unwrap())
    };
    let geometries = [Geometry::Ball, Geometry::Sphere, Geometry::Simplex];
    let (in_box, boxed_contexts) = boxed(&contexts);
    let before = geometries.map(|geometry| after_three(&model, &contexts, geometry));
    let before_in_box = geometries.map(|geometry| after_three(&in_box, &boxed_contexts, geometry));
    contexts.push(space.context([1.0, 0.0, 0.0]).unwrap());
    let (in_box, boxed_contexts) = boxed(&contexts);
    assert_eq!(geometries.map(|geometry| after_three(&model, &contexts, geometry)), before);
    assert_eq!(geometries.map(|geometry| after_three(&in_box, &boxed_contexts, geometry)), before_in_box);
    // The printed step for features in [0, 1]: (1 − γ)/√(2dk·t) on the simplex; in the box three times shorter.
    let printed =
        (1.0 - model.criterion().discount()) / (2.0 * (D * K) as f64 * 3.0).sqrt() / model.features().max_abs();
    assert!((before[0].1 / printed - 1.0).abs() < 1e-12, "{} and {printed}", before[0].1);
    assert!((before_in_box[0].1 / printed - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn descent_on_the_sphere_starts_on_it() {
    let model = model(2);
    let contexts = model.context_space().sample(3, 2).unwrap();
    let problem = problem(&model, &signed_point(D * K, 2), &contexts);
    let after = |scale: f64| {
        let method =
            MirrorDescent { geometry: Geometry::Sphere, average: Average::BeforeUpdate, ..MirrorDescent::default() };
        let initial = signed_point(D * K, 5).iter().map(|w| scale * w).collect();
        let mut settings = Settings { initial: Some(initial), ..Settings::new(Method::MirrorDescent(method)) };
        settings.stop.max_steps = Some(1);
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        fitted.mapping().unwrap().values().to_vec()
    };
    for scale in [0.01, 0.1, 1.0, 100.0] {
        let first = after(scale);
        assert!((dot(&first, &first) - 1.0).abs() < 1e-12, "{scale}: {first:?}");
    }
}

#[test]
fn perturbations_find_the_subgradient() {
    let model = model(6);
    let contexts = model.context_space().sample(4, 6).unwrap();
    let problem = problem(&model, &signed_point(D * K, 6), &contexts);
    let start: Vec<f64> = signed_point(D * K, 7).iter().map(|x| 0.1 * x).collect();
    let truth = problem.loss(&start, &problem.data().all()).unwrap().subgradient;
    let size = dot(&truth, &truth).sqrt();
    assert!(size > 0.1, "there is something to find");
    for policies in [Policies::Fixed, Policies::Resolved] {
        let step = 1e-3;
        let method = EvolutionStrategies {
            policies,
            perturbation: Perturbation::Antithetic { deviation: 1e-7, pairs: 20_000 },
            region: Region::Ball,
            unit_objective: false,
            step_size: EvolutionStep::Schedule { initial: step, decay: 1.0 },
            batch: Batch::Full,
            ..EvolutionStrategies::default()
        };
        let mut settings = Settings::new(Method::EvolutionStrategies(method));
        settings.initial = Some(start.clone());
        settings.stop.max_steps = Some(1);
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        let found: Vec<f64> =
            start.iter().zip(fitted.mapping().unwrap().values()).map(|(a, b)| (a - b) / step).collect();
        let off: Vec<f64> = found.iter().zip(&truth).map(|(x, y)| x - y).collect();
        // The standard error of 20,000 pairs is √((dk + 1)/20,000) of the size.
        assert!(dot(&off, &off).sqrt() <= 0.1 * size, "{policies:?}: {found:?} instead of {truth:?}");
    }
}

#[test]
fn the_theorem_of_evolution_strategies_adds_up() {
    let model = model(6);
    let contexts = model.context_space().sample(3, 6).unwrap();
    let problem = problem(&model, &simplex_point(D * K, 6), &contexts);
    let (n, accuracy) = ((D * K) as f64, 0.5);
    let lipschitz = 2.0 * n.sqrt() * problem.entry_bound().unwrap();
    let theorem = EvolutionTheorem::new(&problem, accuracy).unwrap();
    // Half of the accuracy goes to smoothing, half to the steps.
    assert!((theorem.radius * lipschitz * n.sqrt() - 0.5 * accuracy).abs() < 1e-12);
    assert!((n + 4.0) * 2.0 * lipschitz / (theorem.steps + 1.0).sqrt() <= 0.5 * accuracy);
    let method = EvolutionStrategies::of_theorem(&problem, accuracy).unwrap();
    let mut settings = Settings::new(Method::EvolutionStrategies(method));
    settings.stop.max_steps = Some(200);
    let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
    assert!(fitted.certificate.unnormalised_loss.unwrap() <= fitted.certificate.bound.unwrap());
}
