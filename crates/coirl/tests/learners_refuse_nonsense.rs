//! Settings that cannot do what they say are refused with their name and value; counts are right wherever a run stops.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::demos::{Estimator, Expert, SimulatedExpert};
use coirl::domains::Garnet;
use coirl::learn::{Adaptive, BatchEllipsoid, Bundle, Problem, Record, Status, Stop, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, ContextSpace};
use demonstrated::{sampled, signed_point, train};
use std::ops::ControlFlow;

fn model() -> Cmdp {
    let garnet = Garnet { n_states: 20, n_features: 3, seed: 5, ..Garnet::default() };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap()
}

fn truth() -> LinearMapping {
    LinearMapping::new(2, 3, signed_point(6, 9)).unwrap()
}

fn with_problem<T>(work: impl FnOnce(&Problem<'_>) -> T) -> T {
    let model = model();
    let contexts = model.context_space().sample(12, 4).unwrap();
    let demonstrations = sampled(&model, &truth(), &contexts, 30, 2);
    work(&Problem::new(&model, &train(&demonstrations, 12), &Estimator::ControlVariate).unwrap())
}

fn refusal(settings: &Settings) -> String {
    with_problem(|problem| fit(problem, settings, Watch::default(), &mut ()).unwrap_err().to_string())
}

#[test]
fn stop_rules_that_cannot_act() {
    let with =
        |stop: Stop, record_every, record_loss| Settings { stop, record_every, record_loss, ..Settings::default() };
    let loss = Stop { loss: Some(0.25), ..Stop::default() };
    let patience = Stop { patience: Some(7), ..Stop::default() };
    for (settings, place, reason) in [
        (with(loss.clone(), Some(0), Some(true)), "stop.loss = 0.25", "not recorded"),
        (with(loss.clone(), Some(5), Some(false)), "stop.loss = 0.25", "not recorded"),
        (with(patience.clone(), Some(0), Some(true)), "stop.patience = 7", "record_every"),
        (with(patience, Some(5), Some(true)), "stop.patience = 7", "no validation demonstrations"),
    ] {
        let message = refusal(&settings);
        assert!(message.contains(place) && message.contains(reason), "{message}");
    }
    let reached =
        with_problem(|problem| fit(problem, &with(loss, Some(1), Some(true)), Watch::default(), &mut ()).unwrap());
    assert_eq!(reached.status, Status::LossReached);
}

#[test]
fn settings_of_methods() {
    let bundle = Bundle::default();
    for (method, place) in [
        (Method::Bundle(Bundle { max_cuts: 3, ..bundle }), "max_cuts = 3"),
        (Method::Bundle(Bundle { radius: 0.5, ..bundle }), "radius = 0.5"),
        (Method::Bundle(Bundle { relative_gap: 0.0, ..bundle }), "relative gap = 0"),
        (
            Method::BatchEllipsoid(BatchEllipsoid { failure_probability: 1.5, ..BatchEllipsoid::default() }),
            "failure_probability = 1.5",
        ),
    ] {
        let message = refusal(&Settings::new(method));
        assert!(message.contains(place), "{message}");
    }
}

#[test]
fn an_expert_who_shows_nothing() {
    let model = model();
    let mut expert = SimulatedExpert::new(&model, truth(), 0.0, 1).unwrap();
    expert.trajectories = Some((0, 20));
    let context = &model.context_space().sample(1, 4).unwrap()[0];
    // Nobody is as bad as this in what the expert wants.
    let bad: Vec<f64> = truth().weights(context).unwrap().iter().map(|w| -1e9 * w).collect();
    let error = expert.answer(0, context, &model.mdp(context).unwrap(), &bad).unwrap_err().to_string();
    assert!(error.contains("trajectories = 0"), "{error}");
}

#[test]
fn demonstrations_are_counted_between_records() {
    let mut seen = 0;
    let mut stop = |record: &Record| {
        seen = record.demonstrations;
        if record.step == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let settings = Settings { record_every: Some(5), ..Settings::new(Method::Adaptive(Adaptive::default())) };
    let fitted = with_problem(|problem| fit(problem, &settings, Watch::default(), &mut stop).unwrap());
    assert_eq!((fitted.status, fitted.steps, fitted.demonstrations), (Status::Interrupted, 7, 7));
    assert_eq!(seen, 7);
}
