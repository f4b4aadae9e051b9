//! What is transferred is never worse than what it comes from, and never further from the best than promised: over random
//! models with shared dynamics, mixtures and clusters, with matrices and networks as mappings, against planning and against
//! Gaussian elimination.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::artifact::{is_library, read_library, write_library};
use coirl::contextual::plan_mapping;
use coirl::mapping::{LearnedMapping, LinearMapping, NeuralMapping, RewardMapping};
use coirl::model::{Clusters, Cmdp, Context, ContextSpace, Criterion, Dynamics, Mixture, StateId};
use coirl::network::{Architecture, Layer, Network, Standardisation};
use coirl::plan::{ManyOptions, Plan, Planner, Policy, evaluate, suboptimality_bound};
use coirl::transfer::{
    Basis, BoundBy, Coefficients, Extent, How, NearestContexts, PolicyLibrary, Transfer, cover, printed_in_ball,
    printed_on_simplex, thin,
};
use proptest::prelude::*;
use random_models::{Sketch, brute_force_values, dense_values, largest, sketches};

const D: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Shared,
    Mixture,
    Clusters,
}

/// A model of a kind from the parts of several sketches of one shape, with a mapping.
#[derive(Debug, Clone)]
struct Case {
    sketch: Sketch,
    rotations: [usize; D],
    entries: Vec<f64>,
    kind: Kind,
    network: bool,
}

/// A hidden layer of normalised units.
const UNITS: usize = 5;
const N_PARAMETERS: usize = UNITS * (D + 2) + 3 * (UNITS + 1);

fn cases(kinds: &'static [Kind]) -> impl Strategy<Value = Case> {
    let parts = (sketches(6, 3), prop::array::uniform3(0..7_usize), prop::collection::vec(-1.0..1.0_f64, N_PARAMETERS));
    (parts, prop::sample::select(kinds), any::<bool>()).prop_map(|((sketch, rotations, entries), kind, network)| {
        let mut case = Case { sketch, rotations, entries, kind, network };
        // Values of 10,000 steps leave nothing of a tolerance.
        case.sketch.discount = case.sketch.discount.min(0.99);
        case
    })
}

impl Case {
    fn model(&self) -> Cmdp {
        let shared = self.sketch.model();
        let n = self.sketch.n_states;
        // Other kernels over the same pairs: successors renamed.
        let kernel = |by: usize| {
            let mut other = self.sketch.clone();
            for row in other.transitions.chunks_exact_mut(n) {
                row.rotate_right(by % n);
            }
            other.kernel()
        };
        let kernels: Vec<_> = self.rotations.iter().map(|&by| kernel(by)).collect();
        let dynamics = match self.kind {
            Kind::Shared => shared.dynamics().clone(),
            Kind::Mixture => Dynamics::Mixture(Mixture::new(&kernels).unwrap()),
            Kind::Clusters => {
                let centroids = vec![vec![0.8, 0.1, 0.1], vec![0.1, 0.8, 0.1], vec![0.1, 0.1, 0.8]];
                Dynamics::Clusters(Clusters::new(kernels, centroids).unwrap())
            }
        };
        let criterion = Criterion::discounted(self.sketch.discount).unwrap();
        let model = Cmdp::new(dynamics, shared.features().clone(), self.sketch.initial.clone(), criterion).unwrap();
        model.with_context_space(ContextSpace::Simplex { dimension: D }).unwrap()
    }

    fn linear(&self) -> LinearMapping {
        LinearMapping::new(D, 3, self.entries[..3 * D].to_vec()).unwrap()
    }

    fn mapping(&self) -> LearnedMapping {
        if self.network { network(&self.entries).into() } else { self.linear().into() }
    }
}

/// A network with these parameters; the first also says whether its outputs have unit length.
fn network(parameters: &[f64]) -> NeuralMapping {
    let architecture = Architecture {
        inputs: D,
        hidden: vec![Layer::normalised(UNITS)],
        outputs: 3,
        unit_output: parameters[0] > 0.0,
    };
    let standard = Standardisation { shift: vec![1.0 / D as f64; D], scale: vec![0.25; D] };
    let statistics = (0..2 * UNITS).map(|i| if i < UNITS { 0.1 } else { 0.8 }).collect();
    let parameters = parameters.iter().map(|x| *x as f32).collect();
    NeuralMapping::new(Network::new(architecture, standard, parameters, statistics).unwrap())
}

fn contexts(n: usize, seed: u64) -> Vec<Context> {
    ContextSpace::Simplex { dimension: D }.sample(n, seed).unwrap()
}

fn plan(model: &Cmdp, mapping: &dyn RewardMapping, context: &Context) -> Plan {
    let mdp = model.mdp(context).unwrap();
    Planner::default().plan(&mdp, &mdp.reward(&mapping.weights(context).unwrap()).unwrap()).unwrap()
}

/// V^π by elimination.
fn values_of(model: &Cmdp, mapping: &dyn RewardMapping, context: &Context, policy: &Policy) -> Vec<f64> {
    let mdp = model.mdp(context).unwrap();
    let reward = mdp.reward(&mapping.weights(context).unwrap()).unwrap();
    dense_values(&mdp, &reward, policy.actions().unwrap())
}

/// What may be lost to ties, in every state: 1e-9 of the values at every step.
fn slack(model: &Cmdp, values: &[f64]) -> f64 {
    1e-7 * (1.0 + largest(values)) / (1.0 - model.criterion().discount())
}

/// The largest V* − V^π.
fn loss(best: &[f64], own: &[f64]) -> f64 {
    best.iter().zip(own).map(|(b, v)| b - v).fold(f64::NEG_INFINITY, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Barreto's first theorem, and Theorem 4 of the paper.
    #[test]
    fn improvement_is_as_good_as_all_it_knows(case in cases(&[Kind::Shared]), seed in 0..1000_u64) {
        let (model, mapping) = (case.model(), case.mapping());
        let known = contexts(4, seed);
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&known).unwrap();
        prop_assert!(transfer.n_contexts() == 4 && transfer.n_policies() <= 4);
        for context in contexts(3, seed + 5000) {
            let policy = transfer.policy(&context).unwrap();
            let own = values_of(&model, &mapping, &context, &policy);
            for c_j in &known {
                let other = values_of(&model, &mapping, &context, &plan(&model, &mapping, c_j).policy);
                prop_assert!(loss(&other, &own) <= slack(&model, &own), "{other:?} {own:?}");
            }
            let best = plan(&model, &mapping, &context).values;
            let bound = transfer.bound(&context).unwrap();
            let nearest = known.iter().map(|c| coefficient_distance(&mapping, c, &context)).fold(f64::INFINITY, f64::min);
            prop_assert!((bound.distance - nearest).abs() < 1e-15);
            prop_assert_eq!(bound.distance_of == Coefficients::Weights, case.network);
            prop_assert!(loss(&best, &own) <= bound.bound + slack(&model, &own), "{} of {bound:?}", loss(&best, &own));
            // What the theorem says is what its formula says.
            let rate = 2.0 * phi_max(&model, &mapping) / (1.0 - model.criterion().discount());
            prop_assert!((bound.bound - rate * nearest).abs() <= 1e-12 * (1.0 + rate));
        }
    }

    #[test]
    fn nearest_contexts_of_a_mixture_keep_their_bound(case in cases(&[Kind::Mixture]), seed in 0..1000_u64) {
        let (model, mapping) = (case.model(), case.mapping());
        let known = contexts(4, seed);
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&known).unwrap();
        for context in contexts(3, seed + 5000).into_iter().chain(nearby(&known[0])) {
            let policy = transfer.policy(&context).unwrap();
            let own = values_of(&model, &mapping, &context, &policy);
            let best = plan(&model, &mapping, &context).values;
            let bound = transfer.bound(&context).unwrap();
            prop_assert_eq!(&policy, &plan(&model, &mapping, &known[bound.nearest]).policy);
            prop_assert!(loss(&best, &own) <= bound.bound + slack(&model, &own));
            let discount = model.criterion().discount();
            // What the theorem says is what its formula says.
            match &mapping {
                LearnedMapping::Linear(linear) => {
                    let v_max = largest_entry(&model, linear) / (1.0 - discount);
                    let rate = 2.0 * (phi_max(&model, &mapping) + discount * D as f64 * v_max) / (1.0 - discount);
                    prop_assert!((bound.bound - rate * bound.distance).abs() <= 1e-12 * (1.0 + rate));
                    prop_assert!(largest(&best) <= v_max + slack(&model, &best));
                    prop_assert!((transfer.bound_rate().unwrap() - rate).abs() <= 1e-12 * (1.0 + rate));
                }
                LearnedMapping::Neural(_) => {
                    prop_assert!(transfer.bound_rate().is_none());
                    let bounds = known.iter().map(|c_j| network_bound(&model, &mapping, &context, c_j));
                    let least = bounds.fold(f64::INFINITY, f64::min);
                    prop_assert!((bound.bound - least).abs() <= 1e-9 * (1.0 + least), "{bound:?} {least}");
                    prop_assert!(largest(&plan(&model, &mapping, &known[0]).values) <= network_value(&model, &mapping, &known[0]));
                }
            }
            if discount == 0.0 {
                prop_assert!(bound.printed.is_infinite());
                // Without a future the dynamics do not matter.
                prop_assert!((bound.bound - 2.0 * phi_max(&model, &mapping) * bound.distance).abs() < 1e-12);
            } else if bound.bound == 0.0 {
                prop_assert_eq!(bound.printed, 0.0);
            } else {
                prop_assert!((bound.printed * discount - bound.bound).abs() <= 1e-9 * bound.bound);
            }
        }
    }

    #[test]
    fn clusters_improve_inside_themselves(case in cases(&[Kind::Clusters]), seed in 0..1000_u64) {
        let (model, mapping) = (case.model(), case.mapping());
        let known = contexts(6, seed);
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&known).unwrap();
        let Dynamics::Clusters(clusters) = model.dynamics() else { unreachable!() };
        for context in contexts(4, seed + 5000) {
            let cluster = clusters.assign(&context).unwrap();
            let neighbours: Vec<&Context> = known.iter().filter(|c| clusters.assign(c).unwrap() == cluster).collect();
            if neighbours.is_empty() {
                let error = transfer.policy(&context).unwrap_err().to_string();
                prop_assert!(error.contains(&format!("in cluster {cluster}")), "{error}");
                let how = transfer.predict(&context, None).unwrap().how;
                let cold = matches!(how, How::Planned { warm: false, .. });
                prop_assert!(cold);
                continue;
            }
            let own = values_of(&model, &mapping, &context, &transfer.policy(&context).unwrap());
            for c_j in neighbours {
                let other = values_of(&model, &mapping, &context, &plan(&model, &mapping, c_j).policy);
                prop_assert!(loss(&other, &own) <= slack(&model, &own));
            }
            let best = plan(&model, &mapping, &context).values;
            prop_assert!(loss(&best, &own) <= transfer.bound(&context).unwrap().bound + slack(&model, &own));
        }
    }

    /// Predictions: bounds hold whatever they come from, wanted bounds are kept, and warm starts end where cold ones do.
    #[test]
    fn predictions_keep_what_is_wanted(
        case in cases(&[Kind::Shared, Kind::Mixture, Kind::Clusters]),
        seed in 0..1000_u64,
        wanted in prop_oneof![Just(None), Just(Some(0.0)), (0.0..2.0_f64).prop_map(Some)],
    ) {
        let (model, mapping) = (case.model(), case.mapping());
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&contexts(3, seed)).unwrap();
        for context in contexts(3, seed + 5000) {
            let found = transfer.predict(&context, wanted).unwrap();
            let cold = plan(&model, &mapping, &context);
            let own = values_of(&model, &mapping, &context, &found.policy);
            let close = slack(&model, &own);
            prop_assert!(loss(&own, &found.values).abs() <= close && loss(&found.values, &own).abs() <= close);
            prop_assert!(loss(&cold.values, &own) <= found.bound + close);
            let start: f64 = model.initial().iter().zip(&own).map(|(p, v)| p * v).sum();
            prop_assert!((found.value - start).abs() <= close);
            match found.how {
                How::Planned { .. } => {
                    prop_assert_eq!(&found.policy, &cold.policy);
                    let options = ManyOptions { feature_expectations: false, values: false };
                    let together = plan_mapping(&model, &mapping, std::slice::from_ref(&context), options).unwrap();
                    prop_assert_eq!(&found.policy, &together[0].policy);
                    prop_assert_eq!(found.bound_by, BoundBy::Certificate);
                }
                How::Improved | How::Nearest => {
                    prop_assert!(wanted.is_none_or(|wanted| found.bound <= wanted));
                    prop_assert_ne!(found.bound_by, BoundBy::Certificate);
                    prop_assert!(found.bound <= found.theorem.unwrap().bound);
                }
            }
            let gap = transfer.realised_gap(&context, &found.values).unwrap();
            prop_assert!((gap.largest - loss(&cold.values, &own).max(0.0)).abs() <= close);
            prop_assert!(gap.largest <= found.bound + close);
        }
    }

    /// One backup bounds the loss of any policy, against the best of all policies.
    #[test]
    fn a_backup_bounds_any_policy(sketch in sketches(4, 3), pick in 0..81_usize, noise in -1.0..1.0_f64) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let policies = random_models::all_policies(&mdp);
        let actions = policies[pick % policies.len()].clone();
        let own = dense_values(&mdp, &reward, &actions);
        let policy = Policy::stationary(mdp.pairs(), actions).unwrap();
        let best = brute_force_values(&mdp, &reward);
        let rounding = 1e-9 * (1.0 + largest(&best));
        let bound = suboptimality_bound(&mdp, &reward, &own, &policy).unwrap();
        prop_assert!(loss(&best, &own) <= bound + rounding);
        // Zero for the best, and true for values that have nothing to do with the policy.
        if loss(&best, &own) <= rounding {
            prop_assert!(bound <= 1e3 * rounding / (1.0 - sketch.discount), "{bound}");
        }
        let other: Vec<f64> = own.iter().enumerate().map(|(s, v)| v + noise * s as f64).collect();
        prop_assert!(loss(&best, &own) <= suboptimality_bound(&mdp, &reward, &other, &policy).unwrap() + rounding);
    }

    #[test]
    fn single_states_answer_as_the_whole_policy(
        case in cases(&[Kind::Shared, Kind::Mixture, Kind::Clusters]), seed in 0..1000_u64
    ) {
        let (model, mapping) = (case.model(), case.mapping());
        let known = contexts(5, seed);
        let make = || {
            let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
            transfer.learn(&known).unwrap();
            transfer
        };
        let (asked, whole) = (make(), make());
        for context in contexts(2, seed + 5000).iter().chain(&known) {
            let Ok(policy) = whole.policy(context) else { continue };
            let values = values_of(&model, &mapping, context, &policy);
            for state in (0..model.n_states()).rev() {
                let (action, value) = asked.act(context, StateId(state as u32)).unwrap();
                prop_assert_eq!(action, policy.actions().unwrap()[state]);
                // The policy is worth what is promised, and the theorem says how much more there may be.
                if let Some(value) = value {
                    prop_assert!(value <= values[state] + slack(&model, &values));
                    let best = plan(&model, &mapping, context).values[state];
                    prop_assert!(best <= value + asked.bound(context).unwrap().bound + slack(&model, &values));
                }
            }
            prop_assert!(asked.act(context, StateId(model.n_states() as u32)).is_err());
        }
    }

    #[test]
    fn pruning_changes_nothing_where_it_looked(
        case in cases(&[Kind::Shared, Kind::Mixture, Kind::Clusters]), seed in 0..1000_u64
    ) {
        let (model, mapping) = (case.model(), case.mapping());
        let mut transfer = Transfer::new(&model, mapping).unwrap();
        transfer.learn(&contexts(12, seed)).unwrap();
        let judged: Vec<Context> =
            contexts(4, seed + 5000).into_iter().filter(|context| transfer.policy(context).is_ok()).collect();
        let before: Vec<Policy> = judged.iter().map(|context| transfer.policy(context).unwrap()).collect();
        let n_policies = transfer.n_policies();
        let dropped = transfer.prune(&judged).unwrap();
        prop_assert_eq!(transfer.n_policies() + dropped, n_policies);
        let after: Vec<Policy> = judged.iter().map(|context| transfer.policy(context).unwrap()).collect();
        prop_assert_eq!(before, after);
        prop_assert_eq!(transfer.prune(&[]).unwrap(), 0);
    }

    #[test]
    fn a_library_reads_back_to_the_same_answers(
        case in cases(&[Kind::Shared, Kind::Mixture, Kind::Clusters]), seed in 0..1000_u64
    ) {
        let (model, mapping) = (case.model(), case.mapping());
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&contexts(6, seed)).unwrap();
        let judged: Vec<Context> =
            contexts(2, seed + 9000).into_iter().filter(|context| transfer.policy(context).is_ok()).collect();
        transfer.prune(&judged).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
        write_library(&first, &transfer).unwrap();
        prop_assert!(is_library(&first));
        let read = read_library(&first, &model, mapping.clone()).unwrap();
        prop_assert_eq!((read.n_contexts(), read.n_policies()), (transfer.n_contexts(), transfer.n_policies()));
        for context in contexts(3, seed + 5000) {
            match (transfer.transfer(&context, None), read.transfer(&context, None)) {
                (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
                (a, b) => prop_assert!(a.is_err() && b.is_err()),
            }
        }
        write_library(&second, &read).unwrap();
        prop_assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
        // One number of the mapping changed, or the same numbers in another form.
        let mut moved = case.clone();
        moved.entries[2] += 0.5;
        let other_form = Case { network: !case.network, ..case };
        for other in [moved.mapping(), other_form.mapping()] {
            let error = read_library(&first, &model, other).unwrap_err().to_string();
            prop_assert!(error.contains("another mapping or model"), "{}", error);
        }
    }

    /// Weights as coefficients on unit vectors are the same library.
    #[test]
    fn the_identity_is_a_basis_too(case in cases(&[Kind::Shared]), seed in 0..1000_u64) {
        let (model, mapping) = (case.model(), case.linear());
        let known = contexts(3, seed);
        let policies: Vec<Policy> = known.iter().map(|context| plan(&model, &mapping, context).policy).collect();
        let weights: Vec<Vec<f64>> = known.iter().map(|context| mapping.weights(context).unwrap()).collect();
        let mut of_contexts = PolicyLibrary::shared(&model, &Basis::linear(&mapping)).unwrap();
        of_contexts.add(known.iter().map(Context::values).zip(&policies)).unwrap();
        let mut of_weights = PolicyLibrary::shared(&model, &Basis::identity(3)).unwrap();
        of_weights.add(weights.iter().map(Vec::as_slice).zip(&policies)).unwrap();
        for context in contexts(2, seed + 5000) {
            let w = mapping.weights(&context).unwrap();
            let (a, b) = (of_contexts.improve(context.values()).unwrap(), of_weights.improve(&w).unwrap());
            let values = values_of(&model, &mapping, &context, &policies[0]);
            for (a, b) in a.iter().zip(&b) {
                prop_assert!((a.value - b.value).abs() <= slack(&model, &values));
            }
            for j in 0..of_contexts.known().n_policies() {
                let exact = values_of(&model, &mapping, &context, &of_contexts.known().policy(j));
                for found in [of_contexts.values(context.values(), j).unwrap(), of_weights.values(&w, j).unwrap()] {
                    prop_assert!(loss(&exact, &found).abs() <= slack(&model, &exact));
                }
            }
            prop_assert!(of_weights.bound(&w).is_ok());
        }
    }

    /// A cover's radius holds for contexts that are no candidates.
    #[test]
    fn covers_cover(
        d in 1..6_usize,
        on_simplex in any::<bool>(),
        extent in prop_oneof![(0.08..0.6_f64).prop_map(Extent::Radius), (1..60_usize).prop_map(Extent::Size)],
        known in 0..4_usize,
        seed in 0..1000_u64,
    ) {
        let space = if on_simplex {
            ContextSpace::Simplex { dimension: d }
        } else {
            ContextSpace::Box { lower: vec![-0.5; d], upper: (0..d).map(|i| 0.3 * i as f64).collect() }
        };
        let known = space.sample(known, seed).unwrap();
        match cover(&space, &known, extent, 3000) {
            Ok(found) => {
                let all: Vec<&Context> = known.iter().chain(&found.contexts).collect();
                match extent {
                    Extent::Radius(radius) => prop_assert!(found.radius <= radius),
                    Extent::Size(n) => prop_assert!(found.contexts.len() <= n),
                }
                let corners = (0..d).map(|i| {
                    let at = |j: usize| match &space {
                        ContextSpace::Box { lower, upper } => if i == j { upper[j] } else { lower[j] },
                        _ => f64::from(u8::from(i == j)),
                    };
                    space.context((0..d).map(at).collect::<Vec<_>>()).unwrap()
                });
                for context in space.sample(500, seed + 5000).unwrap().into_iter().chain(corners) {
                    let nearest = all.iter().map(|c| distance(c, &context)).fold(f64::INFINITY, f64::min);
                    prop_assert!(nearest <= found.radius + 1e-12, "{} of {}", nearest, found.radius);
                }
            }
            Err(error) => prop_assert!(error.to_string().contains("more than the 3000 allowed"), "{}", error),
        }
    }
}

/// max over states, or pairs, of ‖Wφ‖₁, from rewards of the rows; of ‖φ‖₁ for a network.
fn phi_max(model: &Cmdp, mapping: &LearnedMapping) -> f64 {
    let basis = match mapping {
        LearnedMapping::Linear(mapping) => mapping.values().to_vec(),
        LearnedMapping::Neural(_) => vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    };
    let rows: Vec<_> = basis.chunks_exact(3).map(|row| model.features().reward(row).unwrap()).collect();
    let mut most: f64 = 0.0;
    for s in 0..model.n_states() {
        for pair in model.pairs().of_state(s) {
            most = most.max(rows.iter().map(|row| row.at(s, pair).abs()).sum());
        }
    }
    most
}

/// max |Wφ| over its entries.
fn largest_entry(model: &Cmdp, mapping: &LinearMapping) -> f64 {
    let reward = |row: &[f64]| model.features().reward(row).unwrap().max_abs();
    mapping.values().chunks_exact(3).map(reward).fold(0.0, f64::max)
}

fn distance(a: &Context, b: &Context) -> f64 {
    largest_difference(a.values(), b.values())
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most, (x, y)| most.max((x - y).abs()))
}

/// Of contexts, or of rewards for a network.
fn coefficient_distance(mapping: &LearnedMapping, a: &Context, b: &Context) -> f64 {
    match mapping {
        LearnedMapping::Linear(_) => distance(a, b),
        LearnedMapping::Neural(network) => {
            largest_difference(&network.weights(a).unwrap(), &network.weights(b).unwrap())
        }
    }
}

/// No value is larger in a context.
fn network_value(model: &Cmdp, mapping: &LearnedMapping, context: &Context) -> f64 {
    let weights = mapping.weights(context).unwrap();
    phi_max(model, mapping) * largest(&weights) / (1.0 - model.criterion().discount()) * (1.0 + 1e-9)
}

/// What the policy of `known` can lose in `context`: half for each of two changes of reward and dynamics, over the horizon.
fn network_bound(model: &Cmdp, mapping: &LearnedMapping, context: &Context, known: &Context) -> f64 {
    let discount = model.criterion().discount();
    let reward = phi_max(model, mapping) * coefficient_distance(mapping, context, known);
    let moved: f64 = context.values().iter().zip(known.values()).map(|(x, y)| (x - y).abs()).sum();
    2.0 * (reward + discount * moved * network_value(model, mapping, known)) / (1.0 - discount)
}

/// Contexts a little off a known one.
fn nearby(context: &Context) -> Vec<Context> {
    let middle = [1.0 / 3.0; D];
    let step = |t: f64| context.values().iter().zip(middle).map(|(c, m)| c + t * (m - c)).collect::<Vec<_>>();
    [1e-3, 1e-2].map(|t| ContextSpace::Simplex { dimension: D }.context(step(t)).unwrap()).to_vec()
}

fn garnet(n_kernels: usize) -> Cmdp {
    let model = coirl::domains::Garnet { n_states: 30, n_features: 3, n_kernels, ..coirl::domains::Garnet::default() };
    model.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: D }).unwrap()
}

fn signed() -> LinearMapping {
    LinearMapping::new(D, 3, vec![1.0, -0.5, 0.2, -0.7, 0.9, 0.1, 0.3, -0.2, -0.8]).unwrap()
}

#[test]
fn what_does_not_apply_is_refused_with_what_does() {
    let mixture = garnet(3);
    let error = PolicyLibrary::shared(&mixture, &Basis::linear(&signed())).unwrap_err().to_string();
    assert!(error.contains("mixture") && error.contains("nearest known context"), "{error}");
    let shared = garnet(1);
    let error = NearestContexts::new(&shared, signed()).unwrap_err().to_string();
    assert!(error.contains("policy library"), "{error}");
    let kernels = vec![mixture.mixture().unwrap().base(0).unwrap(), mixture.mixture().unwrap().base(1).unwrap()];
    let clusters = Clusters::new(kernels, vec![vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]]).unwrap();
    let clusters = Cmdp::new(
        Dynamics::Clusters(clusters),
        shared.features().clone(),
        shared.initial().to_vec(),
        shared.criterion(),
    );
    let error = PolicyLibrary::shared(&clusters.unwrap(), &Basis::linear(&signed())).unwrap_err().to_string();
    assert!(error.contains("cluster"), "{error}");
    for criterion in [Criterion::finite_horizon(5, 0.9).unwrap(), Criterion::Average] {
        let model = shared.clone().with_criterion(criterion).unwrap();
        let error = Transfer::new(&model, signed()).unwrap_err().to_string();
        assert!(error.contains("plan for every context instead"), "{error}");
    }
    let transfer = Transfer::new(&shared, signed()).unwrap();
    let error = transfer.policy(&contexts(1, 0)[0]).unwrap_err().to_string();
    assert!(error.contains("no known context to transfer from"), "{error}");
    assert!(matches!(transfer.predict(&contexts(1, 0)[0], None).unwrap().how, How::Planned { warm: false, .. }));
    let short = ContextSpace::Any.context(vec![0.5, 0.5]).unwrap();
    assert!(transfer.predict(&short, None).unwrap_err().to_string().contains("2 numbers"));
    assert!(Transfer::new(&shared, LinearMapping::new(2, 3, vec![0.0; 6]).unwrap()).is_err());
    assert!(cover(&ContextSpace::Any, &[], Extent::Size(3), 10).is_err());
    assert!(cover(shared.context_space(), &[], Extent::Radius(0.0), 10).is_err());
    assert!(printed_on_simplex(3, 0.0, 0.0).is_infinite() && printed_in_ball(3, 2, 0.0, 0.0).is_infinite());
}

#[test]
fn what_was_planned_is_known_from_then_on() {
    for n_kernels in [1, 3] {
        let model = garnet(n_kernels);
        let mut transfer = Transfer::new(&model, signed()).unwrap();
        let context = &contexts(1, 3)[0];
        let first = transfer.predict_and_learn(context, Some(1e-6)).unwrap();
        assert!(matches!(first.how, How::Planned { warm: false, .. }));
        let again = transfer.predict_and_learn(context, Some(1e-6)).unwrap();
        assert_eq!((again.policy, transfer.n_contexts()), (first.policy, 1));
        assert!(matches!(again.how, How::Improved | How::Nearest) && again.bound_by == BoundBy::Theorem);
        // Far from it the bound is not kept, and planning starts from what is known.
        let far = ContextSpace::Simplex { dimension: D }.context(vec![0.0, 0.0, 1.0]).unwrap();
        let planned = transfer.predict_and_learn(&far, Some(1e-6)).unwrap();
        assert!(matches!(planned.how, How::Planned { warm: true, .. }));
        assert_eq!((planned.policy, transfer.n_contexts()), (plan(&model, &signed(), &far).policy, 2));
    }
}

/// A cover for a wanted bound keeps it for every context, by the theorem alone.
#[test]
fn a_cover_for_a_bound_keeps_it() {
    let model = garnet(1);
    let mut transfer = Transfer::new(&model, signed()).unwrap();
    let wanted = 6.0;
    let radius = wanted / transfer.bound_rate().unwrap();
    let found = cover(model.context_space(), &[], Extent::Radius(radius), 2000).unwrap();
    transfer.learn(&found.contexts).unwrap();
    for context in contexts(100, 8) {
        let prediction = transfer.transfer(&context, Some(wanted)).unwrap();
        assert!(
            prediction.how == How::Improved && prediction.bound_by == BoundBy::Theorem && prediction.bound <= wanted
        );
    }
    // Greedy from what is known adds less than starting afresh, and nothing where all is covered.
    let more = cover(model.context_space(), &found.contexts, Extent::Radius(0.6 * radius), 5000).unwrap();
    assert!(!more.contexts.is_empty() && more.radius <= 0.6 * radius);
    let none = cover(model.context_space(), &found.contexts, Extent::Radius(1.3 * radius), 5000).unwrap();
    assert!(none.contexts.is_empty());
    let error = cover(model.context_space(), &[], Extent::Radius(1e-4), 1000).unwrap_err().to_string();
    // C(6667 + 2, 2) points with coordinates in multiples of 1/6667.
    assert!(error.contains("takes 22234446 contexts") && error.contains("more than the 1000 allowed"), "{error}");
    let list = contexts(50, 1);
    let thinned = thin(&list, Extent::Size(10));
    assert_eq!(thinned.contexts.len(), 10);
    let far = |c: &Context| thinned.contexts.iter().map(|t| distance(t, c)).fold(f64::INFINITY, f64::min);
    assert!((list.iter().map(far).fold(0.0, f64::max) - thinned.radius).abs() < 1e-15);
    let thinned = thin(&list, Extent::Radius(0.2));
    assert!(thinned.radius <= 0.2 && thinned.contexts.len() < 50);
}

#[test]
fn damaged_libraries_are_refused_by_name() {
    let parameters: Vec<f64> = (0..N_PARAMETERS).map(|i| (i as f64).sin()).collect();
    let (linear, network) = (LearnedMapping::from(signed()), LearnedMapping::from(network(&parameters)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.safetensors");
    for (n_kernels, mapping) in [(1, linear), (1, network.clone()), (3, network)] {
        let model = garnet(n_kernels);
        let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
        transfer.learn(&contexts(3, 1)).unwrap();
        write_library(&path, &transfer).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for n in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..n]).unwrap();
            let error = read_library(&path, &model, mapping.clone()).unwrap_err().to_string();
            assert!(error.contains("library.safetensors"), "{n}: {error}");
        }
        let (mut tried, mut refused) = (0, 0);
        for i in (0..whole.len()).step_by(5) {
            let mut bytes = whole.clone();
            bytes[i] ^= [0x01, 0x80, 0xff][i % 3];
            std::fs::write(&path, &bytes).unwrap();
            tried += 1;
            refused += usize::from(read_library(&path, &model, mapping.clone()).is_err());
        }
        assert!(3 * refused > tried, "{refused} of {tried}");
    }
    assert!(!is_library(folder.path()));
}

#[test]
fn predicting_takes_what_is_cheaper() {
    // Planning takes a few sweeps of a random model, and hundreds where rewards come from far away.
    let driving = coirl::domains::Driving::default().build().unwrap();
    let online = coirl::domains::Driving::online_mapping();
    for (model, mapping, known, cheaper) in [(garnet(1), signed(), 60, true), (driving, online, 20, false)] {
        let mut transfer = Transfer::new(&model, mapping).unwrap();
        transfer.learn(&contexts(known, 4)).unwrap();
        let context = &contexts(1, 9)[0];
        assert_eq!(transfer.planning_is_cheaper(context).unwrap(), cheaper, "{} policies", transfer.n_policies());
        let found = transfer.predict(context, None).unwrap();
        assert_eq!(matches!(found.how, How::Planned { warm: false, .. }), cheaper, "{:?}", found.how);
    }
}

#[test]
fn repeated_policies_are_kept_once() {
    let model = garnet(1);
    let mapping = LinearMapping::new(D, 3, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]).unwrap();
    let mut transfer = Transfer::new(&model, mapping.clone()).unwrap();
    transfer.learn(&contexts(20, 4)).unwrap();
    // The context does not matter to this mapping.
    assert_eq!((transfer.n_contexts(), transfer.n_policies()), (20, 1));
    let context = &contexts(1, 9)[0];
    let mdp = model.mdp(context).unwrap();
    let reward = mdp.reward(&mapping.weights(context).unwrap()).unwrap();
    let found = transfer.transfer(context, None).unwrap();
    assert_eq!(found.values, evaluate::values(&mdp, &reward, &found.policy).unwrap());
    assert!(found.bound < 1e-9, "{found:?}");
}
