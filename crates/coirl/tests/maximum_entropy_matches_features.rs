//! Maximum-entropy inverse reinforcement learning: its gradient, its optimum and what it recovers.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::agent::Agent;
use coirl::agent::act;
use coirl::baselines::{MaximumEntropy, MaximumEntropyPerContext};
use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Garnet;
use coirl::learn::{Problem, Status, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Fitted, Method, Settings, fit};
use coirl::model::{Cmdp, Context, ContextSpace, Criterion, StateId};
use coirl::plan::{SoftPlan, SoftPlanner, evaluate};
use demonstrated::{exact, signed_point};

const K: usize = 3;
const D: usize = 2;

fn model(n_kernels: usize) -> Cmdp {
    let garnet = Garnet { n_states: 15, n_actions: 3, n_features: K, n_kernels, seed: 8, ..Garnet::default() };
    garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: D }).unwrap()
}

fn soft(model: &Cmdp, mapping: &LinearMapping, context: &Context, temperature: f64) -> SoftPlan {
    let mdp = model.mdp(context).unwrap();
    let reward = mdp.reward(&mapping.weights(context).unwrap()).unwrap();
    SoftPlanner::at(temperature).plan(&mdp, &reward).unwrap()
}

/// What soft experts show: exact feature expectations.
fn shown(model: &Cmdp, truth: &LinearMapping, contexts: &[Context], temperature: f64) -> Train {
    let demonstration = |context: &Context| {
        let plan = soft(model, truth, context, temperature);
        let mu = evaluate::feature_expectations(&model.mdp(context).unwrap(), &plan.policy).unwrap();
        Demonstration::from_feature_expectations(model, context.clone(), mu).unwrap()
    };
    Train::new(contexts.iter().map(demonstration).collect())
}

fn run(problem: &Problem<'_>, own: MaximumEntropy, initial: Option<Vec<f64>>, max_steps: Option<u64>) -> Fitted {
    let mut settings = Settings { initial, record_loss: Some(false), ..Settings::new(Method::MaximumEntropy(own)) };
    settings.stop.max_steps = max_steps;
    fit(problem, &settings, Watch::default(), &mut ()).unwrap()
}

/// D(W), straight from its definition.
fn dual(problem: &Problem<'_>, values: &[f64], own: &MaximumEntropy) -> f64 {
    let mapping = LinearMapping::new(D, K, values.to_vec()).unwrap();
    let term = |i: usize| {
        let mdp = problem.mdp(i).unwrap();
        let weights = mapping.weights(problem.context(i)).unwrap();
        let plan = SoftPlanner::at(own.temperature).plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap();
        let seen = problem.data().expectations(i).unwrap();
        plan.value - weights.iter().zip(seen).map(|(w, mu)| w * mu).sum::<f64>()
    };
    let mean = (0..problem.len()).map(term).sum::<f64>() / problem.len() as f64;
    mean + 0.5 * own.penalty * values.iter().map(|w| w * w).sum::<f64>()
}

/// ∇D(W) by its formula, in the words of the public interface.
fn gradient(problem: &Problem<'_>, values: &[f64], own: &MaximumEntropy) -> Vec<f64> {
    let mapping = LinearMapping::new(D, K, values.to_vec()).unwrap();
    let mut sum: Vec<f64> = values.iter().map(|w| own.penalty * w).collect();
    for i in 0..problem.len() {
        let mdp = problem.mdp(i).unwrap();
        let weights = mapping.weights(problem.context(i)).unwrap();
        let plan = SoftPlanner::at(own.temperature).plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap();
        let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
        for (a, c) in problem.context(i).values().iter().enumerate() {
            for j in 0..K {
                sum[a * K + j] += c * (mu[j] - problem.data().expectations(i).unwrap()[j]) / problem.len() as f64;
            }
        }
    }
    sum
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (n_kernels, criterion) in [
        (1, Criterion::discounted(0.9).unwrap()),
        (D, Criterion::discounted(0.99).unwrap()),
        (1, Criterion::finite_horizon(7, 1.0).unwrap()),
    ] {
        let model = model(n_kernels).with_criterion(criterion).unwrap();
        let truth = LinearMapping::new(D, K, signed_point(D * K, 1)).unwrap();
        let train = shown(&model, &truth, &model.context_space().sample(6, 2).unwrap(), 0.7);
        let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
        let own = MaximumEntropy { temperature: 0.6, penalty: 0.05, ..MaximumEntropy::default() };
        for seed in 3..6 {
            let point = signed_point(D * K, seed);
            let slopes = gradient(&problem, &point, &own);
            for (i, slope) in slopes.iter().enumerate() {
                let at = |shift: f64| {
                    let mut point = point.clone();
                    point[i] += shift;
                    dual(&problem, &point, &own)
                };
                let found = (at(1e-4) - at(-1e-4)) / 2e-4;
                assert!((found - slope).abs() <= 1e-6 * (1.0 + slope.abs()), "{i}: {found} and {slope}");
            }
        }
    }
}

/// The objective that a run reports is D, and no step makes it larger.
#[test]
fn a_run_descends_on_the_dual() {
    let model = model(D);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 1)).unwrap();
    let contexts = model.context_space().sample(6, 2).unwrap();
    let train = shown(&model, &truth, &contexts, 1.0);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let own = MaximumEntropy { penalty: 0.01, ..MaximumEntropy::default() };
    let mut last = dual(&problem, &[0.0; D * K], &own);
    for steps in 1..8 {
        let fitted = run(&problem, own, None, Some(steps));
        let reported = fitted.history.last().unwrap().batch_loss.unwrap();
        let found = dual(&problem, fitted.mapping().unwrap().values(), &own);
        assert!((reported - found).abs() <= 1e-10 * found.abs(), "{reported} and {found}");
        assert!(found <= last, "{found} after {last}");
        last = found;
    }
    let fitted = run(&problem, own, None, None);
    assert_eq!(fitted.status, Status::Finished);
    assert!(fitted.planner_calls >= 6 * fitted.steps);
    // At the least value the gradient vanishes, penalty included.
    assert!(gradient(&problem, fitted.mapping().unwrap().values(), &own).iter().all(|g| g.abs() < 1e-4));
}

#[test]
fn features_match_and_soft_experts_are_recovered() {
    for n_kernels in [1, D] {
        let model = model(n_kernels);
        let (temperature, penalty) = (0.5, 0.0);
        let truth = LinearMapping::new(D, K, signed_point(D * K, 4)).unwrap();
        let contexts = model.context_space().sample(8, 5).unwrap();
        let train = shown(&model, &truth, &contexts, temperature);
        let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
        let own = MaximumEntropy { temperature, penalty, gradient_tolerance: 1e-10, ..MaximumEntropy::default() };
        let fitted = run(&problem, own, None, None);
        let found = fitted.mapping().unwrap();
        // What no feature tells apart cannot be recovered: policies and feature expectations are what is identified. The
        // features of this model are independent, so that the weights themselves are.
        for context in model.context_space().sample(5, 77).unwrap() {
            let mdp = model.mdp(&context).unwrap();
            let (own, expert) =
                (soft(&model, found, &context, temperature), soft(&model, &truth, &context, temperature));
            let mu = |plan: &SoftPlan| evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
            assert!(mu(&own).iter().zip(mu(&expert)).all(|(x, y)| (x - y).abs() < 1e-5));
        }
        assert!(found.values().iter().zip(truth.values()).all(|(x, y)| (x - y).abs() < 1e-4), "{found:?} {truth:?}");
    }
}

/// A feature that is one everywhere adds a constant to every value and cannot be seen; the penalty leaves it at zero.
#[test]
fn constants_cannot_be_recovered() {
    let plain = model(1);
    let coirl::model::Features::State { values, .. } = plain.features() else { panic!("state features") };
    let values = values.chunks_exact(K).flat_map(|row| [row[0], row[1], 1.0]).collect();
    let features = coirl::model::Features::per_state(plain.n_states(), K, values).unwrap();
    let model = Cmdp::new(plain.dynamics().clone(), features, plain.initial().to_vec(), plain.criterion()).unwrap();
    let model = model.with_context_space(plain.context_space().clone()).unwrap();
    let truth = LinearMapping::new(D, K, vec![0.5, -0.8, 3.0, -0.2, 0.9, -2.0]).unwrap();
    let train = shown(&model, &truth, &model.context_space().sample(8, 5).unwrap(), 1.0);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let own = MaximumEntropy { penalty: 1e-9, gradient_tolerance: 1e-11, ..MaximumEntropy::default() };
    let found = run(&problem, own, None, None).mapping().unwrap().values().to_vec();
    for i in 0..D {
        assert!(found[i * K + 2].abs() < 1e-6, "{found:?}");
        assert!((0..2).all(|j| (found[i * K + j] - truth.values()[i * K + j]).abs() < 1e-3), "{found:?}");
    }
}

#[test]
fn the_dual_is_convex() {
    let model = model(D);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 1)).unwrap();
    let train = Train::new(exact(&model, &truth, &model.context_space().sample(5, 2).unwrap()));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let own = MaximumEntropy { penalty: 0.0, ..MaximumEntropy::default() };
    let scaled = |seed: u64, scale: f64| signed_point(D * K, seed).iter().map(|x| scale * x).collect::<Vec<_>>();
    for seed in 0..12 {
        let (from, to) = (scaled(2 * seed, 0.5 + seed as f64), scaled(2 * seed + 1, 1.0));
        let at = |share: f64| {
            let point: Vec<f64> = from.iter().zip(&to).map(|(x, y)| (1.0 - share) * x + share * y).collect();
            dual(&problem, &point, &own)
        };
        let (start, end) = (at(0.0), at(1.0));
        for share in [0.1, 0.35, 0.5, 0.8] {
            assert!(at(share) <= (1.0 - share) * start + share * end + 1e-9);
        }
    }
}

/// The temperature is a unit: τ V₁(W/τ) = V_τ(W), so that W/τ is the same where λτ is.
#[test]
fn the_temperature_is_a_unit() {
    let model = model(D);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 1)).unwrap();
    let train = Train::new(exact(&model, &truth, &model.context_space().sample(5, 2).unwrap()));
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let found = |temperature: f64| {
        let own = MaximumEntropy { temperature, penalty: 0.02 / temperature, ..MaximumEntropy::default() };
        let own = MaximumEntropy { gradient_tolerance: 1e-10, ..own };
        run(&problem, own, None, None).mapping().unwrap().values().to_vec()
    };
    for (hot, cold) in found(2.0).iter().zip(found(0.2)) {
        assert!((hot - 10.0 * cold).abs() < 1e-5 * (1.0 + hot.abs()), "{hot} and {cold}");
    }
}

/// For exact demonstrations the dual is −τ times the expected discounted log-likelihood of the expert's actions.
#[test]
fn the_dual_is_a_likelihood() {
    let model = model(1);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 1)).unwrap();
    let context = &model.context_space().sample(1, 2).unwrap()[0];
    let expert = soft(&model, &truth, context, 1.0);
    let mdp = model.mdp(context).unwrap();
    let visits = evaluate::occupancy(&mdp, &expert.policy).unwrap();
    let train = shown(&model, &truth, std::slice::from_ref(context), 1.0);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let own = MaximumEntropy { temperature: 0.4, penalty: 0.0, ..MaximumEntropy::default() };
    let other = LinearMapping::new(D, K, signed_point(D * K, 9)).unwrap();
    let plan = soft(&model, &other, context, own.temperature);
    let logs = plan.log_probabilities(0).unwrap();
    let likelihood: f64 = visits.of_pairs().iter().zip(logs).map(|(d, log)| d * log).sum();
    let found = dual(&problem, other.values(), &own);
    assert!((found + own.temperature * likelihood).abs() < 1e-9, "{found} {likelihood}");
}

/// Demonstrations that start elsewhere than the model does are compared from where they start.
#[test]
fn starts_are_the_demonstrations_own() {
    let model = model(1);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 4)).unwrap();
    let demonstration = |(i, context): (usize, &Context)| {
        let start = StateId(i as u32 % 15);
        let mdp = model.mdp(context).unwrap().starting_in(start).unwrap();
        let mu = evaluate::feature_expectations(&mdp, &soft(&model, &truth, context, 1.0).policy).unwrap();
        let shown = Demonstration::from_feature_expectations(&model, context.clone(), mu).unwrap();
        shown.starting_in(&model, start).unwrap()
    };
    let contexts = model.context_space().sample(10, 5).unwrap();
    let train = Train::new(contexts.iter().enumerate().map(demonstration).collect());
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let own = MaximumEntropy { penalty: 0.0, gradient_tolerance: 1e-10, ..MaximumEntropy::default() };
    let found = run(&problem, own, None, None).mapping().unwrap().values().to_vec();
    assert!(found.iter().zip(truth.values()).all(|(x, y)| (x - y).abs() < 1e-4), "{found:?} {truth:?}");
}

#[test]
fn agents_act_softly_or_greedily() {
    let model = model(1);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 4)).unwrap();
    let contexts = model.context_space().sample(6, 5).unwrap();
    let problem = Problem::new(&model, &shown(&model, &truth, &contexts, 1.0), &Estimator::default()).unwrap();
    let soft_agent = run(&problem, MaximumEntropy::default(), None, None).agent;
    let Agent::Soft(mapping) = &soft_agent else { panic!("a soft agent") };
    let acting = act(&model, &soft_agent, &contexts).unwrap();
    let plan = soft(&model, mapping.mapping(), &contexts[2], 1.0);
    assert_eq!(acting[2][0].policy, plan.policy);
    let greedy = run(&problem, MaximumEntropy { greedy: true, ..MaximumEntropy::default() }, None, None).agent;
    assert_eq!(greedy, Agent::Planned(mapping.mapping().clone()));
}

/// Context by context the weights match every context on its own, and a new context gets those of the nearest.
#[test]
fn weights_of_single_contexts() {
    let model = model(D);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 4)).unwrap();
    let contexts = model.context_space().sample(5, 5).unwrap();
    let problem = Problem::new(&model, &shown(&model, &truth, &contexts, 1.0), &Estimator::default()).unwrap();
    let own = MaximumEntropy { penalty: 0.0, gradient_tolerance: 1e-10, ..MaximumEntropy::default() };
    let fitted = fit(
        &problem,
        &Settings::new(Method::MaximumEntropyPerContext(MaximumEntropyPerContext(own))),
        Watch::default(),
        &mut (),
    )
    .unwrap();
    assert_eq!((fitted.status, fitted.certificate.loss), (Status::Finished, None));
    assert!(fitted.mapping().is_err());
    let Agent::Nearest(nearest) = &fitted.agent else { panic!("weights per context") };
    for context in &contexts {
        let (found, own) = (nearest.weights(context).unwrap(), truth.weights(context).unwrap());
        assert!(found.iter().zip(&own).all(|(x, y)| (x - y).abs() < 1e-4), "{found:?} {own:?}");
    }
    let new = model.context_space().context(vec![0.31, 0.69]).unwrap();
    let distance = |c: &Context| (c.values()[0] - 0.31).abs().max((c.values()[1] - 0.69).abs());
    let close = contexts.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
    assert_eq!(nearest.weights(&new).unwrap(), nearest.weights(close).unwrap());
    // The dynamics are the new context's own.
    let mdp = model.mdp(&new).unwrap();
    let plan = SoftPlanner::default().plan(&mdp, &mdp.reward(nearest.weights(&new).unwrap()).unwrap()).unwrap();
    assert_eq!(act(&model, &fitted.agent, &[new]).unwrap()[0][0].policy, plan.policy);
}

#[test]
fn likelihoods_of_trajectories_are_reported() {
    let model = model(1);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 4).iter().map(|w| 4.0 * w).collect()).unwrap();
    let contexts = model.context_space().sample(20, 5).unwrap();
    let demonstration = |(i, context): (usize, &Context)| {
        let plan = soft(&model, &truth, context, 1.0);
        let path = Trajectory::sample(&model.mdp(context).unwrap(), &plan.policy, 60, 3, i as u64).unwrap();
        Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap()
    };
    let train = Train::new(contexts.iter().enumerate().map(demonstration).collect());
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate).unwrap();
    let fitted = run(&problem, MaximumEntropy { penalty: 1e-3, ..MaximumEntropy::default() }, None, None);
    let record = fitted.history.last().unwrap();
    let (mut sum, mut agreement, mut n) = (0.0, 0.0, 0.0);
    for (i, context) in contexts.iter().enumerate() {
        let plan = soft(&model, fitted.mapping().unwrap(), context, 1.0);
        for path in problem.data().trajectories(i) {
            for (state, action) in path.states.iter().zip(&path.actions) {
                let log =
                    plan.log_probabilities(0).unwrap()[model.pairs().find(state.index(), action.index()).unwrap()];
                (sum, agreement, n) = (sum + log, agreement + log.exp(), n + 1.0);
            }
        }
    }
    assert!((record.log_likelihood.unwrap() - sum / n).abs() < 1e-12);
    assert!((record.training_accuracy.unwrap() - agreement / n).abs() < 1e-12);
    // Better than knowing nothing, and not better than the expert can be expected to do.
    assert!(sum / n > -(3.0_f64.ln()));
}

#[test]
fn settings_out_of_range_are_refused() {
    let model = model(1);
    let truth = LinearMapping::new(D, K, signed_point(D * K, 4)).unwrap();
    let contexts = model.context_space().sample(3, 5).unwrap();
    let problem = Problem::new(&model, &shown(&model, &truth, &contexts, 1.0), &Estimator::default()).unwrap();
    let refused = |own: MaximumEntropy, word: &str| {
        for method in [Method::MaximumEntropy(own), Method::MaximumEntropyPerContext(MaximumEntropyPerContext(own))] {
            let error = fit(&problem, &Settings::new(method), Watch::default(), &mut ()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    };
    refused(MaximumEntropy { temperature: 0.0, ..MaximumEntropy::default() }, "temperature");
    refused(MaximumEntropy { penalty: -1.0, ..MaximumEntropy::default() }, "penalty");
    refused(MaximumEntropy { gradient_tolerance: f64::NAN, ..MaximumEntropy::default() }, "gradient_tolerance");
    let mut settings = Settings::new(Method::MaximumEntropyPerContext(MaximumEntropyPerContext::default()));
    settings.record_every = Some(1);
    settings.stop.loss = Some(0.1);
    let error = fit(&problem, &settings, Watch::default(), &mut ()).unwrap_err().to_string();
    assert!(error.contains("stop.loss") && error.contains("no mapping"), "{error}");
}
