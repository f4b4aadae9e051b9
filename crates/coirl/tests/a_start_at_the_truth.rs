//! A learner that starts at the truth and is shown exact demonstrations has nothing to learn, and stays there.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::demos::{Demonstration, Estimator, Evidence, Train};
use coirl::domains::{Driving, Garnet};
use coirl::learn::{Adaptive, Batch, Geometry, OptimisticMirrorDescent, Problem, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, ContextSpace};
use coirl::score::Examination;
use demonstrated::{exact, signed_point};

/// The same in the digits of another program: as exact, and not the same in the last one.
fn computed_elsewhere(model: &Cmdp, shown: &Demonstration) -> Demonstration {
    let Evidence::FeatureExpectations(mu) = shown.evidence() else { panic!("exact demonstrations") };
    let last_digit = |(j, x): (usize, &f64)| x * (1.0 + [2.0, -1.0, 1.0, -2.0][j % 4] * f64::EPSILON);
    let mu = mu.iter().enumerate().map(last_digit).collect();
    Demonstration::from_feature_expectations(model, shown.context().clone(), mu).unwrap()
}

/// The share of the gap between acting at random and the expert, in other contexts, after 200 steps from the truth.
fn kept(model: &Cmdp, truth: &LinearMapping, method: Method) -> f64 {
    let contexts = model.context_space().sample(20, 3).unwrap();
    let shown = exact(model, truth, &contexts).iter().map(|shown| computed_elsewhere(model, shown)).collect();
    let problem = Problem::new(model, &Train::new(shown), &Estimator::ControlVariate).unwrap();
    let mut settings = Settings { initial: Some(truth.values().to_vec()), ..Settings::new(method) };
    settings.stop.max_steps = Some(200);
    let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
    let unseen = model.context_space().sample(60, 4).unwrap();
    Examination::new(model, truth, unseen).unwrap().score(&fitted.agent).unwrap().relative_value
}

fn without_step_size() -> Vec<Method> {
    let optimistic = |geometry| {
        Method::OptimisticMirrorDescent(OptimisticMirrorDescent { geometry, ..OptimisticMirrorDescent::default() })
    };
    let full = Adaptive { batch: Batch::Full, ..Adaptive::default() };
    vec![
        Method::Adaptive(Adaptive::default()),
        Method::Adaptive(full),
        optimistic(Geometry::Ball),
        optimistic(Geometry::Sphere),
    ]
}

#[test]
fn methods_without_a_step_size_do_not_follow_rounding_error() {
    for seed in 0..12 {
        for (scale, discount) in [(1.0, 0.9), (1e4, 0.99), (1e-4, 0.5)] {
            let garnet = Garnet { n_states: 30, n_features: 4, n_actions: 3, discount, seed, ..Garnet::default() };
            let space = ContextSpace::Box { lower: vec![-scale; 3], upper: vec![scale; 3] };
            let model = garnet.build().unwrap().with_context_space(space).unwrap();
            let truth = LinearMapping::new(3, 4, signed_point(12, seed)).unwrap();
            for method in without_step_size() {
                let value = kept(&model, &truth, method.clone());
                assert!(value > 1.0 - 1e-9, "seed {seed}, discount {discount}, {method:?}: {value}");
            }
        }
    }
}

#[test]
fn driving_stays_at_its_truth() {
    let model = Driving::default().build().unwrap();
    for method in without_step_size() {
        let value = kept(&model, &Driving::online_mapping(), method.clone());
        assert!(value > 1.0 - 1e-9, "{method:?}: {value}");
    }
}
