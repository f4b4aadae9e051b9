//! Behavioural cloning and the baselines that take no learning: what they recover, count by hand, and refuse.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::agent::act;
use coirl::agent::{Agent, Choice, ClonedPolicy, Inputs, KnownContexts, NearestActions};
use coirl::baselines::{Cloning, Majority, NearestContext, PrincipalComponents, Uniform};
use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Garnet;
use coirl::learn::{Problem, Status, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Fitted, Method, Settings, fit};
use coirl::model::{ActionId, Cmdp, Context, ContextSpace, Criterion, Dynamics, Features, Kernel, SparseRows, StateId};
use coirl::network::Standardisation;
use coirl::plan::Policy;
use coirl::score::Examination;
use demonstrated::{exact, sampled, signed_point};

/// Actions are drawn among those that are known.
const DRAWN: Choice = Choice { masked: true, most_probable: false };

fn garnet(n_states: usize, n_kernels: usize, dimension: usize) -> Cmdp {
    let garnet =
        Garnet { n_states, n_actions: 3, n_features: 2, n_kernels, admissible: 0.8, seed: 3, ..Garnet::default() };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension }).unwrap()
}

fn run(problem: &Problem<'_>, method: Method) -> coirl::Result<Fitted> {
    fit(problem, &Settings::new(method), Watch::default(), &mut ())
}

/// One long trajectory per context under policies that depend on it.
fn watched(model: &Cmdp, contexts: &[Context], transitions: usize, policy: impl Fn(&Context) -> Policy) -> Train {
    let demonstration = |(i, context): (usize, &Context)| {
        let mdp = model.mdp(context).unwrap();
        let path = Trajectory::sample(&mdp, &policy(context), transitions, 6, i as u64).unwrap();
        Demonstration::from_trajectories(model, context.clone(), vec![path]).unwrap()
    };
    Train::new(contexts.iter().enumerate().map(demonstration).collect())
}

fn probabilities(policy: &Policy) -> &[f64] {
    let Policy::Stochastic(probabilities) = policy else { panic!("a stochastic policy") };
    probabilities
}

/// Mean log-probability of the demonstrated decisions, and how many there are: an action without an alternative is none.
fn explained(problem: &Problem<'_>, policy: impl Fn(&Context) -> Policy) -> (f64, f64) {
    let (model, mut sum, mut n) = (problem.model(), 0.0, 0.0);
    let choices = model.states_with_a_choice();
    for i in 0..problem.len() {
        let policy = policy(problem.context(i));
        for path in problem.data().trajectories(i) {
            for (state, action) in path.states.iter().zip(&path.actions).filter(|step| choices.contains(step.0)) {
                let pair = model.pairs().find(state.index(), action.index()).unwrap();
                (sum, n) = (sum + probabilities(&policy)[pair].ln(), n + 1.0);
            }
        }
    }
    (sum / n, n)
}

/// A policy of the model's own form, with contexts that turn preferences around, is found again.
#[test]
fn a_softmax_policy_is_recovered() {
    let model = garnet(12, 1, 2);
    let inputs = Inputs { dimension: 2, n_state_inputs: 2, interactions: true };
    let plain = Standardisation { shift: vec![0.0; 2], scale: vec![1.0; 2] };
    let Features::State { values, .. } = model.features() else { panic!("state features") };
    // Products of context and state only: nothing that a context does alike in all states.
    let product = |(i, x): (usize, &f64)| if i % inputs.len() > 4 { 8.0 * x } else { 0.0 };
    let coefficients: Vec<f64> = signed_point(3 * inputs.len(), 5).iter().enumerate().map(product).collect();
    let truth = ClonedPolicy::new(inputs, plain, values.clone(), coefficients, DRAWN).unwrap();
    let contexts = model.context_space().sample(200, 1).unwrap();
    let train = watched(&model, &contexts, 1000, |context| truth.policy(&model, context).unwrap());
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let own = Cloning { penalty: 0.0, components: Some(0), ..Cloning::default() };
    let fitted = run(&problem, Method::Cloning(own)).unwrap();
    assert_eq!(fitted.status, Status::Finished);
    let new = model.context_space().sample(20, 999).unwrap();
    let mut without = own;
    without.interactions = false;
    let blunt = run(&problem, Method::Cloning(without)).unwrap();
    // The mean difference of probabilities in contexts that were not seen.
    let distance = |fitted: &Fitted| {
        let acting = act(&model, &fitted.agent, &new).unwrap();
        let each = acting.iter().zip(&new).flat_map(|(behaviour, context)| {
            let wanted = truth.policy(&model, context).unwrap();
            let pairs = probabilities(&behaviour[0].policy).iter().zip(probabilities(&wanted));
            pairs.map(|(x, y)| (x - y).abs()).collect::<Vec<_>>()
        });
        each.sum::<f64>() / (new.len() * model.pairs().len()) as f64
    };
    assert!(distance(&fitted) < 0.01, "{}", distance(&fitted));
    // Without products the context cannot turn a preference around.
    assert!(distance(&blunt) > 5.0 * distance(&fitted), "{}", distance(&blunt));
    let likelihood = |fitted: &Fitted| fitted.history.last().unwrap().log_likelihood.unwrap();
    assert!(likelihood(&fitted) > likelihood(&blunt) + 0.001, "{} {}", likelihood(&fitted), likelihood(&blunt));
    // What was fitted explains what was seen at least as well as the truth does, and hardly better.
    let (mean, n) = explained(&problem, |context| truth.policy(&model, context).unwrap());
    let gain = likelihood(&fitted) - mean;
    assert!(gain > -1e-9 && gain < 100.0 / n, "{gain}");
}

/// The least value of a penalised convex objective: no coefficient can be moved to make it smaller.
#[test]
fn the_objective_is_at_its_least() {
    let model = garnet(10, 2, 2);
    let truth = LinearMapping::new(2, 2, vec![1.0, -1.0, -0.5, 0.8]).unwrap();
    let contexts = model.context_space().sample(8, 1).unwrap();
    let train = Train::new(sampled(&model, &truth, &contexts, 30, 4));
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let own = Cloning { penalty: 0.02, gradient_tolerance: 1e-9, ..Cloning::default() };
    let fitted = run(&problem, Method::Cloning(own)).unwrap();
    let Agent::Cloned(cloned) = &fitted.agent else { panic!("a cloned policy") };
    let objective = |coefficients: &[f64]| {
        let (inputs, states) = (cloned.inputs(), cloned.state_inputs().to_vec());
        let agent = ClonedPolicy::new(inputs, cloned.context().clone(), states, coefficients.to_vec(), DRAWN).unwrap();
        let (mean, _) = explained(&problem, |context| agent.policy(&model, context).unwrap());
        let width = cloned.inputs().len();
        let squares: f64 = coefficients.chunks_exact(width).flat_map(|row| &row[1..]).map(|w| w * w).sum();
        0.5 * own.penalty * squares - mean
    };
    let best = objective(cloned.coefficients());
    let reported = fitted.history.last().unwrap().batch_loss.unwrap();
    assert!((best - reported).abs() < 1e-10, "{best} and {reported}");
    for i in 0..cloned.coefficients().len() {
        for shift in [-1e-2, 1e-2] {
            let mut moved = cloned.coefficients().to_vec();
            moved[i] += shift;
            assert!(objective(&moved) >= best - 1e-9, "coefficient {i}");
        }
    }
}

#[test]
fn the_likeliest_action_or_one_drawn() {
    let model = garnet(10, 1, 2);
    let truth = LinearMapping::new(2, 2, vec![1.0, -1.0, -0.5, 0.8]).unwrap();
    let contexts = model.context_space().sample(8, 1).unwrap();
    let train = Train::new(sampled(&model, &truth, &contexts, 30, 4));
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let drawn = run(&problem, Method::Cloning(Cloning::default())).unwrap();
    let taken = run(&problem, Method::Cloning(Cloning { most_probable: true, ..Cloning::default() })).unwrap();
    let acting = |fitted: &Fitted| act(&model, &fitted.agent, &contexts).unwrap()[3][0].policy.clone();
    let (drawn, taken) = (acting(&drawn), acting(&taken));
    for (s, action) in taken.actions().unwrap().iter().enumerate() {
        let own = model.pairs().of_state(s);
        let most = probabilities(&drawn)[own.clone()].iter().copied().fold(0.0, f64::max);
        let pair = model.pairs().find(s, action.index()).unwrap();
        assert_eq!(probabilities(&drawn)[pair], most);
    }
}

/// Eigenvalues and eigenvectors of a symmetric matrix by Jacobi's rotations.
fn jacobi(mut a: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let n = a.len();
    let mut v: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..100 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-300 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (s, c) = angle.sin_cos();
                for row in [&mut a, &mut v].into_iter().flatten() {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                for k in 0..n {
                    (a[p][k], a[q][k]) = (c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]);
                }
            }
        }
    }
    let mut all: Vec<(f64, Vec<f64>)> = (0..n).map(|j| (a[j][j], v.iter().map(|row| row[j]).collect())).collect();
    all.sort_by(|x, y| y.0.total_cmp(&x.0));
    all
}

#[test]
fn principal_components_are_those_of_the_dense_matrix() {
    for (n_states, most) in [(6, 3), (40, 4), (40, 40)] {
        let model = garnet(n_states, 1, 2);
        let Dynamics::Shared(kernel) = model.dynamics() else { panic!("one kernel") };
        let mut x = vec![vec![0.0; n_states * 3]; n_states];
        for s in 0..n_states {
            for pair in kernel.pairs().of_state(s) {
                let a = kernel.pairs().action(pair).index();
                kernel.successors(pair).for_each(|(next, p)| x[s][a * n_states + next] = p);
            }
        }
        for j in 0..n_states * 3 {
            let mean = x.iter().map(|row| row[j]).sum::<f64>() / n_states as f64;
            x.iter_mut().for_each(|row| row[j] -= mean);
        }
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let gram = x.iter().map(|row| x.iter().map(|other| product(row, other)).collect()).collect();
        let eigen = jacobi(gram);
        let found = PrincipalComponents::of_dynamics(kernel, most, 1.0).unwrap();
        let n = n_states as f64;
        let total: f64 = eigen.iter().map(|entry| entry.0).sum();
        assert!((found.total_variance - total / n).abs() < 1e-12 * total);
        // A kernel of n states has n − 1 components at most.
        assert_eq!(found.len(), most.min(n_states - 1));
        for (j, (value, vector)) in eigen.iter().take(found.len()).enumerate() {
            assert!((found.variances[j] - value / n).abs() < 1e-9 * eigen[0].0, "{j}");
            let scores: Vec<f64> = (0..n_states).map(|s| found.scores[s * found.len() + j]).collect();
            let along = product(&scores, vector);
            let off: f64 = scores.iter().zip(vector).map(|(x, u)| (x - along * u).powi(2)).sum();
            assert!(off.sqrt() < 1e-4 * value.sqrt(), "component {j}: {off:e}");
            assert!((along.abs() - value.sqrt()).abs() < 1e-6 * value.sqrt());
        }
        let half = PrincipalComponents::of_dynamics(kernel, n_states, 0.5).unwrap();
        let explained: f64 = half.variances.iter().sum();
        assert!(explained >= 0.5 * half.total_variance);
        assert!(explained - half.variances.last().unwrap() < 0.5 * half.total_variance);
    }
}

/// A line of three states; action 0 goes left, 1 right, 2 stays and is not allowed in the last state.
fn line() -> Cmdp {
    let to = |s: usize, a: usize| [s.saturating_sub(1), (s + 1).min(2), s][a];
    let mut transitions = vec![0.0; 27];
    let mut admissible = vec![true; 9];
    admissible[8] = false;
    for s in 0..3 {
        for a in 0..3 {
            transitions[(s * 3 + a) * 3 + to(s, a)] = 1.0;
        }
    }
    let kernel = Kernel::from_dense(3, 3, &transitions, Some(&admissible)).unwrap();
    let features = Features::per_state(3, 1, vec![0.0, 0.5, 1.0]).unwrap();
    let criterion = Criterion::discounted(0.5).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0, 0.0], criterion).unwrap();
    model.with_context_space(ContextSpace::Box { lower: vec![0.0], upper: vec![10.0] }).unwrap()
}

fn seen(model: &Cmdp, context: f64, states: &[u32], actions: &[u32]) -> Demonstration {
    let path = Trajectory {
        states: states.iter().map(|&s| StateId(s)).collect(),
        actions: actions.iter().map(|&a| ActionId(a)).collect(),
    };
    let context = model.context_space().context(vec![context]).unwrap();
    Demonstration::from_trajectories(model, context, vec![path]).unwrap()
}

#[test]
fn counted_by_hand() {
    let model = line();
    let train = Train::new(vec![
        // State 0: stay, stay, right. State 1: left.
        seen(&model, 1.0, &[0, 0, 0, 1, 0], &[2, 2, 1, 0]),
        // State 0: right. State 1: stay, stay.
        seen(&model, 4.0, &[0, 1, 1, 1], &[1, 2, 2]),
        // State 0: right, left.
        seen(&model, 8.0, &[0, 1, 0, 0], &[1, 0, 0]),
    ]);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let actions = |list: &[u32]| list.iter().map(|&a| ActionId(a)).collect::<Vec<_>>();
    let majority = run(&problem, Method::Majority(Majority {})).unwrap();
    // State 0: right thrice of six. State 1: left twice, stay twice: the lower. State 2 was never seen; over all states stay was
    // taken four times, and right and left thrice each, but stay is not allowed there: left is the lower of the two.
    assert_eq!(majority.agent, Agent::Fixed(actions(&[1, 0, 0])));
    assert_eq!((majority.status, majority.steps), (Status::Finished, 1));
    assert_eq!(majority.history.last().unwrap().training_accuracy, Some(0.5));
    let nearest = run(&problem, Method::NearestContext(NearestContext {})).unwrap();
    let Agent::Copied(copied) = &nearest.agent else { panic!("actions per context") };
    let taken = |x: f64| copied.actions(&model.context_space().context(vec![x]).unwrap()).unwrap().to_vec();
    assert_eq!(taken(0.0), actions(&[2, 0, 0]));
    // Halfway between two contexts the first is taken.
    assert_eq!(taken(2.5), actions(&[2, 0, 0]));
    assert_eq!(taken(2.6), actions(&[1, 2, 0]));
    // Left and right once each in state 0: the lower.
    assert_eq!(taken(10.0), actions(&[0, 0, 0]));
    assert_eq!(nearest.history.last().unwrap().training_accuracy, Some(0.8));
    let uniform = run(&problem, Method::Uniform(Uniform {})).unwrap();
    assert_eq!(uniform.agent, Agent::Uniform);
    assert!((uniform.history.last().unwrap().training_accuracy.unwrap() - 1.0 / 3.0).abs() < 1e-15);
    // Going right for ever: 0 + 0.5·0.5 + 0.25·1/(1 − 0.5).
    let right = Agent::Fixed(actions(&[1, 1, 1]));
    let context = model.context_space().context(vec![3.0]).unwrap();
    let acting = act(&model, &right, std::slice::from_ref(&context)).unwrap();
    assert!((acting[0][0].feature_expectations[0] - 0.75).abs() < 1e-12);
    let examination = Examination::new(&model, &LinearMapping::new(1, 1, vec![1.0]).unwrap(), vec![context]).unwrap();
    let score = examination.score(&right).unwrap();
    assert_eq!((score.value_ratio, score.accuracy, score.held_out_loss), (1.0, 1.0, None));
    let random = examination.score(&Agent::Uniform).unwrap();
    assert!(
        random.relative_value.abs() < 1e-12 && (random.accuracy - (1.0 / 3.0 + 1.0 / 3.0 + 0.5) / 3.0).abs() < 1e-12
    );
}

#[test]
fn features_of_actions_and_contextual_dynamics() {
    let plain = garnet(8, 2, 2);
    let n = plain.pairs().len();
    let values: Vec<f64> = (0..n).map(|pair| (pair % 5) as f64).collect();
    let rows = SparseRows::new(2, (0..=n).collect(), (0..n as u32).map(|i| i % 2).collect(), values).unwrap();
    let features = Features::per_pair(plain.pairs(), rows).unwrap();
    let model = Cmdp::new(plain.dynamics().clone(), features, plain.initial().to_vec(), plain.criterion()).unwrap();
    let contexts = model.context_space().sample(6, 1).unwrap();
    let train = watched(&model, &contexts, 40, |_| Policy::uniform(model.pairs()));
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let fitted = run(&problem, Method::Cloning(Cloning::default())).unwrap();
    let Agent::Cloned(cloned) = &fitted.agent else { panic!("a cloned policy") };
    assert!(cloned.inputs().n_state_inputs > 2 && cloned.state_inputs().iter().all(|x| x.is_finite()));
    assert!(act(&model, &fitted.agent, &contexts).is_ok());
}

#[test]
fn demonstrations_without_actions_are_refused() {
    let model = garnet(10, 1, 2);
    let truth = LinearMapping::new(2, 2, vec![1.0, -1.0, -0.5, 0.8]).unwrap();
    let contexts = model.context_space().sample(4, 1).unwrap();
    let train = Train::new(exact(&model, &truth, &contexts));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let methods =
        [Method::Cloning(Cloning::default()), Method::Majority(Majority {}), Method::NearestContext(NearestContext {})];
    for method in methods {
        let error = run(&problem, method).unwrap_err().to_string();
        assert!(error.contains("actions") && error.contains("give trajectories"), "{error}");
    }
    let fitted = run(&problem, Method::Uniform(Uniform {})).unwrap();
    assert_eq!(fitted.history.last().unwrap().training_accuracy, None);
}

#[test]
fn agents_that_do_not_fit_are_refused() {
    let (small, large) = (garnet(10, 1, 2), garnet(12, 1, 2));
    let contexts = small.context_space().sample(3, 1).unwrap();
    let train = watched(&small, &contexts, 20, |_| Policy::uniform(small.pairs()));
    let problem = Problem::new(&small, &train, &Estimator::ControlVariate).unwrap();
    let longer = ContextSpace::Simplex { dimension: 3 }.sample(1, 1).unwrap();
    for method in
        [Method::Cloning(Cloning::default()), Method::Majority(Majority {}), Method::NearestContext(NearestContext {})]
    {
        let agent = run(&problem, method).unwrap().agent;
        assert!(act(&large, &agent, &contexts).is_err(), "{}", agent.kind());
        assert!(matches!(agent, Agent::Fixed(_)) || act(&small, &agent, &longer).is_err(), "{}", agent.kind());
    }
    let known = |values: Vec<f64>| KnownContexts::new(2, values);
    assert!(known(vec![1.0; 3]).is_err() && known(Vec::new()).is_err() && known(vec![f64::NAN, 0.0]).is_err());
    assert!(NearestActions::new(known(vec![0.5; 4]).unwrap(), vec![ActionId(0); 3]).is_err());
    let mut settings = Settings::new(Method::Cloning(Cloning { penalty: -1.0, ..Cloning::default() }));
    assert!(fit(&problem, &settings, Watch::default(), &mut ()).unwrap_err().to_string().contains("penalty"));
    settings.method = Method::Cloning(Cloning::default());
    settings.initial = Some(vec![0.0; 4]);
    assert!(fit(&problem, &settings, Watch::default(), &mut ()).unwrap_err().to_string().contains("initial"));
}
