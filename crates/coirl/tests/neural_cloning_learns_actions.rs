//! Behavioural cloning by a network: what it learns that a linear model cannot, where both are the same, and what it keeps to.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::agent::Agent;
use coirl::agent::act;
use coirl::artifact::{read_fitted, write_fitted};
use coirl::baselines::{Cloning, NeuralCloning, StepDecay};
use coirl::demos::{Demonstration, Estimator, Train, Trajectory, Validation};
use coirl::domains::Garnet;
use coirl::learn::{Batch, Hidden, Problem, Record, Recorder, Snapshot, Status, Stop, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Checkpoint, Fitted, Method, Settings, fit, resume};
use coirl::model::{ActionId, Cmdp, Context, ContextSpace, Criterion, Dynamics, Features, Kernel, StateId};
use coirl::network::{Layer, Network};
use coirl::optim::Optimiser;
use coirl::plan::Policy;
use demonstrated::sampled;
use std::ops::ControlFlow;

fn run(problem: &Problem<'_>, method: Method, steps: Option<u64>) -> coirl::Result<Fitted> {
    let stop = Stop { max_steps: steps, ..Stop::default() };
    fit(problem, &Settings { stop, seed: 3, ..Settings::new(method) }, Watch::default(), &mut ())
}

fn likelihood(fitted: &Fitted) -> f64 {
    fitted.history.last().unwrap().log_likelihood.unwrap()
}

/// A model whose state 0 is left by either of two actions, for contexts in a square; state 1 is the end.
fn crossroads() -> Cmdp {
    let transitions = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    let kernel = Kernel::from_dense(2, 2, &transitions, None).unwrap();
    let features = Features::per_state(2, 1, vec![0.0, 1.0]).unwrap();
    let criterion = Criterion::discounted(0.5).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0], criterion).unwrap();
    model.with_context_space(ContextSpace::Box { lower: vec![-1.0; 2], upper: vec![1.0; 2] }).unwrap()
}

/// Action 1 where the two numbers of the context have the same sign: no linear function of the context says so.
fn exclusive_or(context: &Context) -> ActionId {
    ActionId(u32::from((context.values()[0] > 0.0) == (context.values()[1] > 0.0)))
}

fn at_the_crossroads(model: &Cmdp, contexts: &[Context]) -> Vec<Demonstration> {
    let demonstration = |context: &Context| {
        let path = Trajectory { states: vec![StateId(0), StateId(1)], actions: vec![exclusive_or(context)] };
        Demonstration::from_trajectories(model, context.clone(), vec![path]).unwrap()
    };
    contexts.iter().map(demonstration).collect()
}

#[test]
fn an_exclusive_or_of_the_context_is_learned_by_the_network_alone() {
    let model = crossroads();
    let contexts = model.context_space().sample(400, 1).unwrap();
    let train = Train::new(at_the_crossroads(&model, &contexts));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let new = model.context_space().sample(500, 2).unwrap();
    let right = |fitted: &Fitted| {
        let acting = act(&model, &fitted.agent, &new).unwrap();
        let same = |(own, context): &(&Vec<coirl::agent::Behaviour>, &Context)| {
            own[0].policy.actions().unwrap()[0] == exclusive_or(context)
        };
        acting.iter().zip(&new).filter(same).count() as f64 / new.len() as f64
    };
    let network = NeuralCloning { most_probable: true, ..NeuralCloning::default() };
    let network = right(&run(&problem, Method::NeuralCloning(network), None).unwrap());
    assert!(network > 0.95, "{network}");
    // Products of context and state are no help: there is one state to decide in.
    let line = Cloning { most_probable: true, ..Cloning::default() };
    let line = right(&run(&problem, Method::Cloning(line), None).unwrap());
    assert!(line < 0.65, "{line}");
}

fn garnet() -> Cmdp {
    let garnet = Garnet { n_states: 12, n_actions: 3, n_features: 2, admissible: 0.8, seed: 3, ..Garnet::default() };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 3 }).unwrap()
}

/// Trajectories of an optimal expert.
fn driven(model: &Cmdp, n: usize, transitions: usize) -> Train {
    let truth = LinearMapping::new(3, 2, vec![1.0, -1.0, -0.5, 0.8, 0.3, 0.3]).unwrap();
    Train::new(sampled(model, &truth, &model.context_space().sample(n, 1).unwrap(), transitions, 4))
}

/// Without hidden layers the network is the logistic model without products, and finds the same optimum.
#[test]
fn without_hidden_layers_it_is_the_logistic_model() {
    let model = garnet();
    let train = driven(&model, 12, 25);
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let logistic = Cloning { penalty: 0.0, components: Some(2), interactions: false, ..Cloning::default() };
    let logistic = run(&problem, Method::Cloning(logistic), Some(2000)).unwrap();
    let linear = NeuralCloning {
        hidden: Hidden::Layers(Vec::new()),
        components: Some(2),
        step_size: 0.1,
        batch: Batch::Full,
        ..NeuralCloning::default()
    };
    let linear = run(&problem, Method::NeuralCloning(linear), Some(4000)).unwrap();
    let (found, least) = (likelihood(&linear), likelihood(&logistic));
    assert!((found - least).abs() < 1e-3 && least < -0.05, "{found} and {least}");
    let policies = |fitted: &Fitted| act(&model, &fitted.agent, &model.context_space().sample(5, 9).unwrap()).unwrap();
    for (one, other) in policies(&linear).iter().zip(policies(&logistic)) {
        let (Policy::Stochastic(one), Policy::Stochastic(other)) = (&one[0].policy, &other[0].policy) else {
            panic!("stochastic policies")
        };
        let apart = one.iter().zip(other).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(apart < 0.05, "{apart}");
    }
}

/// One plain step over all decisions is −α times the gradient of the reported loss, which finite differences know.
#[test]
fn a_step_follows_the_gradient_of_the_loss() {
    let model = garnet();
    let train = driven(&model, 6, 15);
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let own = NeuralCloning {
        hidden: Hidden::Layers(vec![Layer::leaky(7), Layer::linear(5)]),
        optimiser: Optimiser::Sgd { momentum: 0.0 },
        step_size: 0.5,
        step_decay: StepDecay::Inverse { rate: 0.0 },
        batch: Batch::Full,
        ..NeuralCloning::default()
    };
    let network = |fitted: &Fitted| -> Network {
        let Agent::ClonedNetwork(cloned) = &fitted.agent else { panic!("a cloned network") };
        cloned.network().clone()
    };
    let start = run(&problem, Method::NeuralCloning(own.clone()), Some(0)).unwrap();
    let next = run(&problem, Method::NeuralCloning(own), Some(1)).unwrap();
    let (before, after) = (network(&start), network(&next));
    let Agent::ClonedNetwork(cloned) = &start.agent else { panic!("a cloned network") };
    let choices = model.states_with_a_choice();
    // The loss as the agent's policies have it, with one parameter moved.
    let loss = |at: usize, by: f32| {
        let mut parameters = before.parameters().to_vec();
        parameters[at] += by;
        let (shape, standard) = (before.architecture().clone(), before.standardisation().clone());
        let moved = Network::new(shape, standard, parameters, Vec::new()).unwrap();
        let states = cloned.state_inputs().to_vec();
        let agent = coirl::agent::ClonedNetwork::new(3, moved, states, cloned.choice()).unwrap();
        let (mut sum, mut n) = (0.0, 0.0);
        for i in 0..problem.len() {
            let Policy::Stochastic(policy) = agent.policy(&model, problem.context(i)).unwrap() else {
                panic!("a stochastic policy")
            };
            for path in problem.data().trajectories(i) {
                for (state, action) in path.states.iter().zip(&path.actions).filter(|step| choices.contains(step.0)) {
                    let pair = model.pairs().find(state.index(), action.index()).unwrap();
                    (sum, n) = (sum - policy[pair].ln(), n + 1.0);
                }
            }
        }
        sum / n
    };
    assert!((loss(0, 0.0) + likelihood(&start)).abs() < 1e-6);
    let (n, h) = (before.parameters().len(), 2e-3_f32);
    let mut largest = 0.0_f64;
    for at in (0..n).step_by(n / 40) {
        let slope = (loss(at, h) - loss(at, -h)) / (2.0 * f64::from(h));
        let taken = f64::from(before.parameters()[at] - after.parameters()[at]) / 0.5;
        assert!((slope - taken).abs() < 2e-3 * slope.abs().max(0.1), "parameter {at}: {slope} and {taken}");
        largest = largest.max(slope.abs());
    }
    assert!(largest > 0.05, "{largest}");
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

#[test]
fn a_resumed_run_ends_with_the_same_file_and_the_file_is_read_bit_for_bit() {
    let model = garnet();
    let train = driven(&model, 10, 20);
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let normalised = Hidden::Layers(vec![Layer::normalised(20)]);
    for (i, own) in [
        NeuralCloning::default(),
        NeuralCloning { hidden: normalised, most_probable: true, masked: false, ..NeuralCloning::default() },
        NeuralCloning { optimiser: Optimiser::Sgd { momentum: 0.9 }, ..NeuralCloning::paper() },
    ]
    .into_iter()
    .enumerate()
    {
        let stop = Stop { max_steps: Some(40), ..Stop::default() };
        let settings =
            Settings { stop, seed: 7, record_every: Some(10), ..Settings::new(Method::NeuralCloning(own.clone())) };
        let whole = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        let mut stopper = StopAfter(17, None);
        assert_eq!(fit(&problem, &settings, Watch::default(), &mut stopper).unwrap().status, Status::Interrupted);
        let checkpoint: Checkpoint = serde_json::from_str(&stopper.1.unwrap()).unwrap();
        let resumed = resume(&problem, checkpoint, Watch::default(), &mut ()).unwrap();
        let (one, other) = (folder.path().join("one.safetensors"), folder.path().join("other.safetensors"));
        write_fitted(&one, &whole).unwrap();
        write_fitted(&other, &resumed).unwrap();
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap(), "{i}");
        let read = read_fitted(&one).unwrap();
        assert_eq!(read, whole);
        let contexts = model.context_space().sample(3, 8).unwrap();
        assert_eq!(act(&model, &read.agent, &contexts).unwrap(), act(&model, &whole.agent, &contexts).unwrap());
    }
}

/// The held-out actions say when to stop: the network that explained them best is returned.
#[test]
fn held_out_actions_end_a_run() {
    let model = crossroads();
    let contexts = model.context_space().sample(60, 1).unwrap();
    // Every fifth expert is mistaken: whoever learns the mistakes by heart explains others worse.
    let mistaken = |i: usize, demonstration: Demonstration| {
        let context = demonstration.context().clone();
        let right = exclusive_or(&context).0;
        let action = ActionId(if i.is_multiple_of(5) { 1 - right } else { right });
        let path = Trajectory { states: vec![StateId(0), StateId(1)], actions: vec![action] };
        Demonstration::from_trajectories(&model, context, vec![path]).unwrap()
    };
    let all = at_the_crossroads(&model, &contexts);
    let all: Vec<Demonstration> = all.into_iter().enumerate().map(|(i, one)| mistaken(i, one)).collect();
    let (train, validation) = (Train::new(all[..30].to_vec()), Validation::new(all[30..].to_vec()));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let held_out = Problem::validation(&model, &validation, &Estimator::default()).unwrap();
    let own = NeuralCloning { step_decay: StepDecay::Geometric { factor: 1.0 }, ..NeuralCloning::default() };
    let stop = Stop { max_steps: Some(3000), patience: Some(4), ..Stop::default() };
    let settings = Settings { stop, record_every: Some(5), ..Settings::new(Method::NeuralCloning(own)) };
    let watch = Watch { validation: Some(&held_out), ..Watch::default() };
    let fitted = fit(&problem, &settings, watch, &mut ()).unwrap();
    assert_eq!(fitted.status, Status::ValidationStalled);
    let losses: Vec<f64> = fitted.history.iter().map(|record| record.validation_loss.unwrap()).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(losses.last().unwrap() > &least && losses[0] > least, "{losses:?}");
    let mut mean = 0.0;
    for (i, behaviour) in act(&model, &fitted.agent, &contexts[30..]).unwrap().iter().enumerate() {
        let Policy::Stochastic(policy) = &behaviour[0].policy else { panic!("a stochastic policy") };
        mean -= policy[held_out.data().trajectories(i)[0].actions[0].index()].ln() / 30.0;
    }
    assert!((mean - least).abs() < 1e-9, "{mean} and {least}");
}

#[test]
fn steps_become_shorter_as_they_say() {
    let model = crossroads();
    let train = Train::new(at_the_crossroads(&model, &model.context_space().sample(8, 1).unwrap()));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let lengths = |step_decay| {
        let own = NeuralCloning { step_decay, step_size: 0.1, ..NeuralCloning::paper() };
        let stop = Stop { max_steps: Some(4), ..Stop::default() };
        let settings = Settings { stop, record_every: Some(1), ..Settings::new(Method::NeuralCloning(own)) };
        let fitted = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
        fitted.history[1..].iter().map(|record| record.step_size.unwrap()).collect::<Vec<f64>>()
    };
    let near = |found: Vec<f64>, expected: [f64; 4]| {
        assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15), "{found:?}");
    };
    near(lengths(StepDecay::Inverse { rate: 1.0 }), [0.1, 0.05, 0.1 / 3.0, 0.025]);
    near(lengths(StepDecay::Geometric { factor: 0.5 }), [0.1, 0.05, 0.025, 0.0125]);
    near(lengths(StepDecay::Linear), [0.1, 0.075, 0.05, 0.025]);
    assert_eq!(NeuralCloning::paper().step_decay, StepDecay::Inverse { rate: 1e-7 });
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    let model = crossroads();
    let contexts = model.context_space().sample(4, 1).unwrap();
    let train = Train::new(at_the_crossroads(&model, &contexts));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let own = NeuralCloning::default();
    for (wrong, word) in [
        (NeuralCloning { step_size: 0.0, ..own.clone() }, "step size"),
        (NeuralCloning { step_decay: StepDecay::Inverse { rate: -1.0 }, ..own.clone() }, "decay"),
        (NeuralCloning { step_decay: StepDecay::Geometric { factor: 0.0 }, ..own.clone() }, "decay"),
        (NeuralCloning { weight_decay: -1.0, ..own.clone() }, "weight decay"),
        (NeuralCloning { batch: Batch::WithoutReplacement { size: 0 }, ..own.clone() }, "batch size"),
        (NeuralCloning { hidden: Hidden::Layers(vec![Layer::leaky(0)]), ..own.clone() }, "layers"),
    ] {
        let error = run(&problem, Method::NeuralCloning(wrong), None).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let wild = NeuralCloning { optimiser: Optimiser::Sgd { momentum: 0.0 }, step_size: 1e30, ..own.clone() };
    let error = run(&problem, Method::NeuralCloning(wild), Some(20)).unwrap_err().to_string();
    assert!(error.contains("diverged"), "{error}");
    // Whoever is only seen where nothing can be left has decided nothing.
    let waiting = Trajectory { states: vec![StateId(1); 3], actions: vec![ActionId(0); 2] };
    let waiting = Demonstration::from_trajectories(&model, contexts[0].clone(), vec![waiting]).unwrap();
    let train = Train::new(vec![waiting]);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    for method in [Method::NeuralCloning(own), Method::Cloning(Cloning::default())] {
        let error = run(&problem, method, None).unwrap_err().to_string();
        assert!(error.contains("none of the 2 demonstrated actions is a decision"), "{error}");
    }
}
