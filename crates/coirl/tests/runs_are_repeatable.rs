//! Every method: the same bytes for any number of threads, and a resumed run equals an uninterrupted one.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::baselines::{NeuralCloning, Projection, States};
use coirl::demos::{Estimator, SimulatedExpert};
use coirl::domains::Garnet;
use coirl::learn::{
    Adaptive, Average, Batch, BatchEllipsoid, Ellipsoid, EvolutionStrategies, Geometry, Hidden, MirrorDescent, Neural,
    NeuralGradient, Policies, Problem, Record, Recorder, Snapshot, Status, StepSize, Watch,
};
use coirl::mapping::LinearMapping;
use coirl::methods::{Checkpoint, Fitted, Method, Settings, fit, resume};
use coirl::model::{Cmdp, ContextSpace};
use coirl::network::Layer;
use coirl::objective::ObjectiveChoice;
use coirl::optim::Optimiser;
use demonstrated::{sampled, signed_point, train};
use std::ops::ControlFlow;

fn model() -> Cmdp {
    let garnet = Garnet { n_states: 30, n_actions: 3, n_successors: 3, n_features: 3, seed: 5, ..Garnet::default() };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap()
}

/// A small network with and without batch normalisation.
fn network(gradient: NeuralGradient, objective: ObjectiveChoice, optimiser: Optimiser) -> Method {
    let hidden = Hidden::Layers(vec![Layer::normalised(8), Layer::leaky(300)]);
    let batch = Batch::WithoutReplacement { size: 4 };
    let largest_gradient = Some(1.0);
    Method::Neural(Neural { hidden, objective, gradient, optimiser, batch, largest_gradient, ..Neural::default() })
}

/// One of each, with batches of every kind; what the registry holds beside, as it comes.
fn methods() -> Vec<Method> {
    let descent = |geometry, step_size, average, batch| {
        Method::MirrorDescent(MirrorDescent { geometry, step_size, average, batch })
    };
    let theory = StepSize::Theory { multiplier: 10.0 };
    let schedule = StepSize::Schedule { initial: 0.3, decay: 0.95 };
    let evolution = EvolutionStrategies::default();
    let mut all = vec![
        Method::Adaptive(Adaptive::default()),
        Method::Adaptive(Adaptive {
            objective: ObjectiveChoice::likelihood(),
            batch: Batch::WithoutReplacement { size: 3 },
        }),
        network(NeuralGradient::Propagated, ObjectiveChoice::likelihood(), Optimiser::Adam),
        network(NeuralGradient::Propagated, ObjectiveChoice::Loss, Optimiser::Sgd { momentum: 0.9 }),
        network(
            NeuralGradient::Antithetic { deviation: 1e-2, pairs: 3, policies: Policies::Resolved },
            ObjectiveChoice::Loss,
            Optimiser::Sgd { momentum: 0.0 },
        ),
        descent(Geometry::Ball, theory, Average::AfterUpdate, Batch::WithReplacement { size: 3 }),
        descent(Geometry::Simplex, theory, Average::BeforeUpdate, Batch::WithoutReplacement { size: 4 }),
        descent(Geometry::Sphere, schedule, Average::Last, Batch::Full),
        Method::EvolutionStrategies(EvolutionStrategies { accept_if_better: true, ..evolution }),
        Method::EvolutionStrategies(EvolutionStrategies { policies: Policies::Resolved, best: true, ..evolution }),
        Method::Ellipsoid(Ellipsoid { tolerance: Some(0.01) }),
        Method::BatchEllipsoid(BatchEllipsoid {
            tolerance: Some(0.01),
            horizon: Some(20),
            batch: Some(2),
            ..BatchEllipsoid::default()
        }),
        Method::Projection(Projection { states: States::Joint }),
        Method::NeuralCloning(NeuralCloning::paper()),
    ];
    // Every other method of the registry as it comes.
    for entry in coirl::methods::methods() {
        if all.iter().all(|method| method.name() != (entry.method)().name()) || entry.name == "projection" {
            all.push((entry.method)());
        }
    }
    all.push(Method::NeuralCloning(NeuralCloning::default()));
    all
}

/// Stops after a number of steps and keeps the checkpoint, as text.
struct StopAfter(u64, Option<String>);

impl Recorder for StopAfter {
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        if record.step < self.0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.1 = Some(serde_json::to_string(&snapshot.checkpoint::<Method>()?).unwrap());
        Ok(ControlFlow::Break(()))
    }
}

fn with_problem<T>(model: &Cmdp, work: impl FnOnce(&Problem<'_>) -> T) -> T {
    let truth = LinearMapping::new(2, 3, signed_point(6, 9)).unwrap();
    let contexts = model.context_space().sample(12, 4).unwrap();
    let demonstrations = sampled(model, &truth, &contexts, 30, 2);
    let expert = SimulatedExpert::new(model, truth, 0.01, 3).unwrap();
    let problem = Problem::new(model, &train(&demonstrations, 12), &Estimator::ControlVariate).unwrap();
    work(&problem.with_expert(&expert))
}

fn settings(method: &Method) -> Settings {
    let mut settings = Settings { seed: 11, record_every: Some(3), ..Settings::new(method.clone()) };
    settings.stop.max_steps = Some(12);
    settings
}

/// Everything that is written of a run.
fn bytes(fitted: &Fitted) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fitted.safetensors");
    coirl::artifact::write_fitted(&path, fitted).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn threads_change_nothing() {
    let model = model();
    for method in methods() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                with_problem(&model, |problem| {
                    bytes(&fit(problem, &settings(&method), Watch::default(), &mut ()).unwrap())
                })
            })
        };
        let one = run(1);
        assert_eq!(one, run(2), "{method:?}");
        assert_eq!(one, run(7), "{method:?}");
    }
}

#[test]
fn a_resumed_run_is_the_run() {
    let model = model();
    for method in methods() {
        let settings = settings(&method);
        let whole = with_problem(&model, |problem| fit(problem, &settings, Watch::default(), &mut ()).unwrap());
        for stop in [1, 5, 8] {
            let mut stopped = StopAfter(stop, None);
            let part = with_problem(&model, |problem| fit(problem, &settings, Watch::default(), &mut stopped).unwrap());
            if part.status != Status::Interrupted {
                assert_eq!(bytes(&part), bytes(&whole), "{method:?} ended by itself at {stop}");
                continue;
            }
            let checkpoint: Checkpoint = serde_json::from_str(&stopped.1.unwrap()).unwrap();
            let resumed =
                with_problem(&model, |problem| resume(problem, checkpoint, Watch::default(), &mut ()).unwrap());
            assert_eq!(bytes(&resumed), bytes(&whole), "{method:?} from {stop}");
        }
    }
}

/// Keeps the checkpoint of the last step.
#[derive(Default)]
struct LastCheckpoint(Option<String>);

impl Recorder for LastCheckpoint {
    fn step(&mut self, _record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        self.0 = Some(serde_json::to_string(&snapshot.checkpoint::<Method>()?).unwrap());
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn a_run_that_was_killed_after_its_last_step_has_ended() {
    let model = model();
    for method in methods() {
        let mut settings = settings(&method);
        settings.stop.max_steps = Some(60);
        let mut last = LastCheckpoint::default();
        let whole = with_problem(&model, |problem| fit(problem, &settings, Watch::default(), &mut last).unwrap());
        let checkpoint: Checkpoint = serde_json::from_str(&last.0.unwrap()).unwrap();
        assert_eq!(checkpoint.ended, Some(whole.status).filter(|status| *status != Status::StepLimit));
        let resumed = with_problem(&model, |problem| resume(problem, checkpoint, Watch::default(), &mut ()).unwrap());
        assert_eq!(bytes(&resumed), bytes(&whole), "{method:?}, {:?}", whole.status);
    }
}

#[test]
fn a_checkpoint_of_other_data_is_refused() {
    let model = model();
    let settings = settings(&Method::default());
    let mut stopped = StopAfter(2, None);
    let _ = with_problem(&model, |problem| fit(problem, &settings, Watch::default(), &mut stopped).unwrap());
    let text = stopped.1.unwrap();
    let checkpoint: Checkpoint = serde_json::from_str(&text).unwrap();
    let other = Garnet { n_states: 30, n_actions: 3, n_successors: 3, n_features: 3, seed: 6, ..Garnet::default() };
    let other = other.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap();
    let refused = with_problem(&other, |problem| resume(problem, checkpoint, Watch::default(), &mut ()).unwrap_err());
    assert!(refused.to_string().contains("other data"), "{refused}");
    let mut damaged: Checkpoint = serde_json::from_str(&text).unwrap();
    damaged.state = serde_json::json!({"iterate": "gone"});
    let refused = with_problem(&model, |problem| resume(problem, damaged, Watch::default(), &mut ()).unwrap_err());
    assert!(refused.to_string().contains("damaged"), "{refused}");
}

#[test]
fn contradictory_demonstrations_leave_a_residual() {
    // The same context twice, once by an expert of W and once by an expert of −W.
    let model = model();
    let context = model.context_space().sample(1, 4).unwrap();
    let truth = signed_point(6, 9);
    let opposite: Vec<f64> = truth.iter().map(|w| -w).collect();
    let mapping = |values: Vec<f64>| LinearMapping::new(2, 3, values).unwrap();
    let mut both = demonstrated::exact(&model, &mapping(truth), &context);
    both.extend(demonstrated::exact(&model, &mapping(opposite), &context));
    let problem = Problem::new(&model, &train(&both, 2), &Estimator::default()).unwrap();
    let fitted = fit(&problem, &Settings::default(), Watch::default(), &mut ()).unwrap();
    assert!(fitted.certificate.loss.unwrap() > 0.01, "{:?}", fitted.certificate.loss);
}

#[test]
fn policies_met_before_give_what_planning_afresh_gives() {
    let model = coirl::domains::Driving::default().build().unwrap();
    let contexts = model.context_space().sample(20, 1).unwrap();
    let truth = coirl::domains::Driving::online_mapping();
    let demonstrations = demonstrated::exact(&model, &truth, &contexts);
    let fresh = || Problem::new(&model, &train(&demonstrations, 20), &Estimator::default()).unwrap();
    let seasoned = fresh();
    // A mapping that wanders around the truth, so that policies come back.
    for step in 0..12 {
        let off = signed_point(9, step % 4);
        let w: Vec<f64> = truth.values().iter().zip(&off).map(|(t, o)| t + 0.02 * o).collect();
        let agents = seasoned.best_responses(&w, &seasoned.data().all()).unwrap();
        assert_eq!(agents, fresh().best_responses(&w, &seasoned.data().all()).unwrap(), "step {step}");
        let policy = seasoned.best_response(&w, 3).unwrap().policy;
        let mdp = model.mdp(&contexts[3]).unwrap();
        let weights = LinearMapping::new(3, 3, w).unwrap().weights(&contexts[3]).unwrap();
        let planned = coirl::plan::Planner::default().plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap();
        assert_eq!(policy, planned.policy, "step {step}");
    }
}
