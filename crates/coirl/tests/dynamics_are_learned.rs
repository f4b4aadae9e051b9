//! Dynamics learned from transitions: closed forms, consistency, the mixture against brute force, what is refused, and the
//! loop in which reward and dynamics are learned together.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;

use coirl::Error;
use coirl::agent::act;
use coirl::demos::{Demonstration, Estimator, Trajectory};
use coirl::domains::{Driving, Garnet};
use coirl::dynamics::unsupported_share;
use coirl::dynamics::{
    Centres, ExpectationMaximisation, Learned, MaximisedStatus, Observations, Prior, PriorMean, StartCounts, Structure,
    Transition, TransitionCounts, Unseen, estimate, log_likelihood, maximum_likelihood,
};
use coirl::learn::{Adaptive, Problem, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{
    DynamicsLearning, Environment, FittedOnline, Method, OnlineDynamics, Settings, SimulatedEnvironment, fit,
    fit_online,
};
use coirl::model::{ActionId, Clusters, Cmdp, Context, ContextSpace, Dynamics, Kernel, Mixture, Pairs, StateId};
use coirl::plan::{Policy, evaluate};
use coirl::score::Examination;
use demonstrated::{sampled, signed_point, train};
use proptest::prelude::*;
use std::sync::Arc;

fn step(state: u32, action: u32, next: u32) -> Transition {
    Transition { state: StateId(state), action: ActionId(action), next: StateId(next) }
}

fn times(n: usize, transition: Transition) -> impl Iterator<Item = Transition> {
    std::iter::repeat_n(transition, n)
}

fn context(values: &[f64]) -> Context {
    ContextSpace::Any.context(values).unwrap()
}

fn all_pairs(n_states: usize, n_actions: usize) -> Arc<Pairs> {
    Arc::new(Pairs::all(n_states, n_actions).unwrap())
}

/// Four states and two actions: 0 —0→ 1 three times and 2 once, 0 —1→ 3 twice; nothing else.
fn few() -> TransitionCounts {
    let mut counts = TransitionCounts::new(all_pairs(4, 2));
    let seen = times(3, step(0, 0, 1)).chain([step(0, 0, 2), step(0, 1, 3), step(0, 1, 3)]);
    counts.add_all(seen).unwrap();
    counts
}

fn row(kernel: &Kernel, state: usize, action: usize) -> Vec<f64> {
    let pair = kernel.pairs().find(state, action).unwrap();
    (0..kernel.n_states()).map(|next| kernel.probability(pair, next)).collect()
}

fn close(found: &[f64], expected: &[f64]) {
    assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-12), "{found:?} is not {expected:?}");
}

/// Mean over pairs of Σ |P − Q|.
fn distance(p: &Kernel, q: &Kernel) -> f64 {
    let of_pair =
        |pair| (0..p.n_states()).map(|s| (p.probability(pair, s) - q.probability(pair, s)).abs()).sum::<f64>();
    (0..p.pairs().len()).map(of_pair).sum::<f64>() / p.pairs().len() as f64
}

fn with_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

#[test]
fn rows_are_the_mean_of_frequencies_and_prior() {
    let counts = few();
    let learn = |prior: &Prior| maximum_likelihood(&counts, prior).unwrap().kernel;
    // α = 2 over the successors 1, 2, 3 that were seen from state 0.
    let seen = learn(&Prior::new(2.0, PriorMean::SeenFromState));
    close(&row(&seen, 0, 0), &[0.0, (3.0 + 2.0 / 3.0) / 6.0, (1.0 + 2.0 / 3.0) / 6.0, (2.0 / 3.0) / 6.0]);
    close(&row(&seen, 0, 1), &[0.0, (2.0 / 3.0) / 4.0, (2.0 / 3.0) / 4.0, (2.0 + 2.0 / 3.0) / 4.0]);
    // From a state that was never seen nothing is known to follow but itself.
    close(&row(&seen, 2, 1), &[0.0, 0.0, 1.0, 0.0]);
    let stay = learn(&Prior::new(1.0, PriorMean::Stay));
    close(&row(&stay, 0, 0), &[0.2, 0.6, 0.2, 0.0]);
    close(&row(&stay, 3, 0), &[0.0, 0.0, 0.0, 1.0]);
    let unknown = learn(&Prior::new(1.0, PriorMean::Unknown(StateId(3))));
    close(&row(&unknown, 0, 0), &[0.0, 0.6, 0.2, 0.2]);
    close(&row(&unknown, 1, 0), &[0.0, 0.0, 0.0, 1.0]);
    close(&row(&unknown, 3, 1), &[0.0, 0.0, 0.0, 1.0]);
    let drawn = learn(&Prior::new(4.0, PriorMean::Kernel(Arc::new(stay.clone()))));
    close(&row(&drawn, 0, 0), &[0.8 / 8.0, (3.0 + 2.4) / 8.0, (1.0 + 0.8) / 8.0, 0.0]);
    // Without a prior: the frequencies, and the fallback where it was asked for.
    let plain = learn(&Prior { unseen: Unseen::PriorMean, ..Prior::new(0.0, PriorMean::Stay) });
    close(&row(&plain, 0, 0), &[0.0, 0.75, 0.25, 0.0]);
    close(&row(&plain, 2, 0), &[0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn starts_are_counted() {
    let mut starts = StartCounts::new(3);
    [1, 1, 2].into_iter().try_for_each(|s| starts.add(StateId(s))).unwrap();
    close(&starts.distribution(0.0, &[1.0, 0.0, 0.0]).unwrap(), &[0.0, 2.0 / 3.0, 1.0 / 3.0]);
    close(&starts.distribution(1.0, &[0.5, 0.5, 0.0]).unwrap(), &[0.125, 2.5 / 4.0, 0.25]);
    assert!(starts.add(StateId(3)).unwrap_err().to_string().contains("first state has shape 3; expected below 3"));
    assert!(StartCounts::new(3).distribution(0.0, &[1.0, 0.0, 0.0]).is_err());
}

#[test]
fn counts_add_up_in_any_order() {
    let counts = few();
    assert_eq!((counts.n_transitions(), counts.n_distinct()), (6, 3));
    assert_eq!(counts.iter().collect::<Vec<_>>(), [(0, 1, 3), (0, 2, 1), (1, 3, 2)]);
    let support = counts.support();
    assert_eq!((support.of(0), support.of(1), support.of(2), support.total()), (4.0, 2.0, 0.0, 6.0));
    assert_eq!((support.n_seen(), support.thinnest_seen(), counts.share_unseen()), (2, Some(1), 0.75));
    assert_eq!(support.thin(3.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    let mut backwards = TransitionCounts::new(all_pairs(4, 2));
    backwards.add_all([step(0, 1, 3), step(0, 0, 2), step(0, 0, 1)]).unwrap();
    let mut rest = TransitionCounts::new(all_pairs(4, 2));
    rest.add_all([step(0, 0, 1), step(0, 1, 3), step(0, 0, 1)]).unwrap();
    backwards.merge(&rest).unwrap();
    assert_eq!(backwards, counts);
    // Memory goes with what is distinct: two million transitions of 8 pairs are 32 counts.
    let many = (0..2_000_000_u32).map(|i| step(i % 4, (i / 4) % 2, (i / 8) % 4));
    let mut much = TransitionCounts::new(all_pairs(4, 2));
    much.add_all(many).unwrap();
    assert_eq!((much.n_distinct(), much.n_transitions()), (32, 2_000_000));
}

/// A long walk with random actions.
fn walk(model: &Cmdp, c: &Context, transitions: usize, seed: u64, number: u64) -> Trajectory {
    let mdp = model.mdp(c).unwrap();
    Trajectory::sample(&mdp, &Policy::uniform(mdp.pairs()), transitions, seed, number).unwrap()
}

#[test]
fn the_error_falls_with_the_root_of_the_data() {
    let model = Garnet { n_states: 10, n_actions: 2, n_successors: 4, ..Garnet::default() }.build().unwrap();
    let c = context(&[1.0]);
    let Dynamics::Shared(truth) = model.dynamics() else { unreachable!() };
    let mean_error = |transitions: usize| {
        let error = |seed: u64| {
            let mut counts = TransitionCounts::new(model.pairs().clone());
            counts.add_all(walk(&model, &c, transitions, seed, 0).transitions()).unwrap();
            distance(&maximum_likelihood(&counts, &Prior::default()).unwrap().kernel, truth)
        };
        (0..8).map(error).sum::<f64>() / 8.0
    };
    let (few, many) = (mean_error(4_000), mean_error(64_000));
    assert!((3.2..5.0).contains(&(few / many)), "{few} falls to {many}");
    assert!(many < 0.03, "{many}");
}

/// Walks in many contexts of a mixture.
fn mixed_walks(model: &Cmdp, n_contexts: usize, transitions: usize, seed: u64) -> Observations {
    let mut observations = Observations::new(model.pairs().clone());
    for (i, c) in model.context_space().sample(n_contexts, seed).unwrap().iter().enumerate() {
        observations.add(c, walk(model, c, transitions, seed, i as u64).transitions()).unwrap();
    }
    observations
}

fn mixture_model() -> Cmdp {
    let garnet = Garnet { n_states: 6, n_actions: 2, n_successors: 3, n_kernels: 3, seed: 2, ..Garnet::default() };
    garnet.build().unwrap()
}

fn bases(dynamics: &Dynamics) -> Vec<Kernel> {
    let Dynamics::Mixture(mixture) = dynamics else { unreachable!() };
    (0..mixture.n_kernels()).map(|i| mixture.base(i).unwrap()).collect()
}

fn mixture() -> Structure {
    Structure::Mixture(ExpectationMaximisation::default())
}

#[test]
fn the_mixture_climbs_and_finds_the_base_kernels() {
    let model = mixture_model();
    let errors = [20_usize, 320].map(|n_contexts| {
        let observations = mixed_walks(&model, n_contexts, 2_000, 7);
        let learned = estimate(&observations, &mixture(), &Prior::new(0.1, PriorMean::SeenFromState)).unwrap();
        let maximised = learned.maximised.as_ref().unwrap();
        assert_eq!(maximised.status, MaximisedStatus::Converged);
        assert!(maximised.iterations() > 5);
        // Never down, but for rounding.
        let slack = 1e-12 * maximised.log_posterior[0].abs();
        assert!(maximised.log_posterior.windows(2).all(|pair| pair[1] >= pair[0] - slack));
        assert!(maximised.gap < 1e-4 * observations.n_transitions() as f64, "{}", maximised.gap);
        let (found, truth) = (bases(&learned.dynamics), bases(model.dynamics()));
        found.iter().zip(&truth).map(|(p, q)| distance(p, q)).sum::<f64>() / 3.0
    });
    assert!(errors[1] < 0.05 && (2.5..6.5).contains(&(errors[0] / errors[1])), "{errors:?}");
}

/// Log-posterior of p = (P₁(1), P₂(1)) for one pair with two successors.
fn objective(p: [f64; 2], seen: &[(f64, u64, u64)], believed: [f64; 2]) -> f64 {
    let log = |n: f64, x: f64| if n == 0.0 { 0.0 } else { n * x.ln() };
    let data = seen.iter().map(|&(c, stays, leaves)| {
        let leave = c * p[0] + (1.0 - c) * p[1];
        log(stays as f64, 1.0 - leave) + log(leaves as f64, leave)
    });
    data.sum::<f64>() + p.iter().map(|&x| log(believed[0], 1.0 - x) + log(believed[1], x)).sum::<f64>()
}

/// The maximum over [0, 1] of a concave function, by thirds.
fn highest(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if f(a) < f(b) { low = a } else { high = b }
    }
    f((low + high) / 2.0).max(f(0.0)).max(f(1.0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_mixture_is_the_maximum_that_brute_force_finds(
        seen in prop::collection::vec((0.0..=1.0_f64, 0..30_u64, 0..30_u64), 1..5),
        strength in prop_oneof![Just(0.0), 0.5..5.0_f64],
        max_iterations in prop_oneof![Just(2_usize), Just(50), Just(20_000)],
    ) {
        let total: u64 = seen.iter().map(|entry| entry.1 + entry.2).sum();
        prop_assume!(total > 0);
        let mut observations = Observations::new(all_pairs(2, 1));
        for &(c, stays, leaves) in &seen {
            let moves = times(stays as usize, step(0, 0, 0)).chain(times(leaves as usize, step(0, 0, 1)));
            observations.add(&context(&[c, 1.0 - c]), moves).unwrap();
        }
        let mean = Kernel::from_dense(2, 1, &[0.75, 0.25, 0.0, 1.0], None).unwrap();
        let prior = Prior { strength, mean: PriorMean::Kernel(Arc::new(mean)), unseen: Unseen::PriorMean };
        let settings = ExpectationMaximisation { max_iterations, tolerance: 1e-13 };
        let learned = estimate(&observations, &Structure::Mixture(settings), &prior).unwrap();
        let found = bases(&learned.dynamics);
        let believed = [0.75 * strength, 0.25 * strength];
        let reached = objective([0, 1].map(|i| row(&found[i], 0, 0)[1]), &seen, believed);
        let best = highest(|x| highest(|y| objective([x, y], &seen, believed)));
        let maximised = learned.maximised.unwrap();
        prop_assert!((reached - maximised.log_posterior.last().unwrap()).abs() < 1e-9 * (1.0 + reached.abs()));
        prop_assert!(best - reached <= maximised.gap + 1e-9 * total as f64, "{best} is {reached} + {}", maximised.gap);
        if max_iterations == 20_000 {
            prop_assert!((best - reached).abs() < 1e-4 * total as f64, "{best} is not {reached}");
        }
        if strength == 0.0 {
            prop_assert!((learned.log_likelihood.total() - reached).abs() < 1e-9 * (1.0 + reached.abs()));
        }
    }
}

#[test]
fn a_corner_of_the_simplex_is_the_pool() {
    let model = Garnet { n_states: 8, n_actions: 2, ..Garnet::default() }.build().unwrap();
    let corner = context(&[0.0, 1.0]);
    let mut observations = Observations::new(model.pairs().clone());
    observations.add(&corner, walk(&model, &corner, 500, 1, 0).transitions()).unwrap();
    for strength in [0.0, 2.0] {
        let prior = Prior { unseen: Unseen::PriorMean, ..Prior::new(strength, PriorMean::SeenFromState) };
        let learned = estimate(&observations, &mixture(), &prior).unwrap();
        let pooled = maximum_likelihood(&observations.pooled(), &prior).unwrap();
        let found = bases(&learned.dynamics);
        assert!(distance(&found[1], &pooled.kernel) < 1e-12);
        // The other base kernel has seen nothing, and says so.
        let away = learned.support_of(&context(&[1.0, 0.0])).unwrap();
        assert_eq!((away.total(), learned.support_of(&corner).unwrap().total()), (0.0, 500.0));
        assert_eq!(learned.support_of(&context(&[0.5, 0.5])).unwrap().total(), 250.0);
        // It keeps the prior's row, or without a prior what the pair was seen to do.
        let mean = Prior::new(1e12, PriorMean::SeenFromState);
        let mean = maximum_likelihood(&observations.pooled(), &mean).unwrap().kernel;
        assert!(distance(&found[0], if strength > 0.0 { &mean } else { &pooled.kernel }) < 1e-9);
        assert!(distance(&mean, &pooled.kernel) > 0.1);
    }
}

/// Two kinds of contexts with opposite dynamics: near 0 action 0 stays, near 1 it leaves.
fn two_kinds() -> Observations {
    let mut observations = Observations::new(all_pairs(2, 2));
    for x in [0.0, 0.1, 0.2] {
        observations.add(&context(&[x]), times(8, step(0, 0, 0)).chain(times(2, step(0, 0, 1)))).unwrap();
    }
    for x in [0.9, 1.0] {
        observations.add(&context(&[x]), times(10, step(0, 0, 1)).chain(times(5, step(1, 0, 1)))).unwrap();
    }
    observations
}

fn clustered(centres: Centres, shrinkage: f64) -> Learned {
    estimate(&two_kinds(), &Structure::Clusters { centres, shrinkage }, &Prior::default()).unwrap()
}

fn clusters(learned: &Learned) -> &Clusters {
    let Dynamics::Clusters(clusters) = &learned.dynamics else { unreachable!() };
    clusters
}

#[test]
fn clusters_are_drawn_to_the_pool() {
    let given = || Centres::Given(vec![vec![0.0], vec![1.0]]);
    let Dynamics::Shared(pool) = estimate(&two_kinds(), &Structure::Pooled, &Prior::default()).unwrap().dynamics else {
        unreachable!()
    };
    let [free, drawn, pooled] = [0.0, 20.0, 1e12].map(|shrinkage| clustered(given(), shrinkage));
    close(&row(&clusters(&free).kernels()[0], 0, 0), &[0.8, 0.2]);
    close(&row(&clusters(&free).kernels()[1], 0, 0), &[0.0, 1.0]);
    // A pair that the cluster never saw follows the pool.
    close(&row(&clusters(&free).kernels()[0], 1, 0), &row(&pool, 1, 0));
    let p = row(&pool, 0, 0)[0];
    close(&row(&clusters(&drawn).kernels()[0], 0, 0)[..1], &[(24.0 + 20.0 * p) / 50.0]);
    close(&row(&clusters(&drawn).kernels()[1], 0, 0)[..1], &[20.0 * p / 40.0]);
    assert!(clusters(&pooled).kernels().iter().all(|kernel| distance(kernel, &pool) < 1e-9));
    let support = |x: f64| free.support_of(&context(&[x])).unwrap().of(0);
    assert_eq!((support(0.3), support(0.8), free.support.of(0)), (30.0, 20.0, 50.0));
}

#[test]
fn clusters_are_found() {
    for seed in 0..20 {
        let found = clustered(Centres::Found { number: 2, seed }, 1.0);
        let mut centres: Vec<f64> = clusters(&found).centroids().iter().map(|centre| centre[0]).collect();
        centres.sort_by(f64::total_cmp);
        close(&centres, &[0.1, 0.95]);
        // As many clusters as contexts leave each context alone.
        let alone = clustered(Centres::Found { number: 5, seed }, 1.0);
        let mut centres: Vec<f64> = clusters(&alone).centroids().iter().map(|centre| centre[0]).collect();
        centres.sort_by(f64::total_cmp);
        close(&centres, &[0.0, 0.1, 0.2, 0.9, 1.0]);
    }
}

#[test]
fn what_is_true_foresees_best() {
    let model = mixture_model();
    let (seen, held_out) = (mixed_walks(&model, 60, 1_000, 1), mixed_walks(&model, 40, 500, 99));
    let learn = |structure: &Structure| estimate(&seen, structure, &Prior::default()).unwrap().dynamics;
    let by_cluster = Structure::Clusters { centres: Centres::Found { number: 6, seed: 0 }, shrinkage: 5.0 };
    let mean = |dynamics: &Dynamics| log_likelihood(dynamics, &held_out).unwrap().mean();
    let [pooled, clusters, mixed] =
        [Structure::Pooled, by_cluster, mixture()].map(|structure| mean(&learn(&structure)));
    let truth = mean(model.dynamics());
    assert!(pooled + 0.02 < clusters && clusters + 0.01 < mixed && mixed < truth && truth - mixed < 0.01);
    // By hand: one transition each of probability 3/4 and 1/4 in the context (0.5, 0.5), and one that cannot happen.
    let kernels = [[1.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.0, 1.0]].map(|t| Kernel::from_dense(2, 1, &t, None).unwrap());
    let mixture = Dynamics::Mixture(Mixture::new(&kernels).unwrap());
    let mut observations = Observations::new(all_pairs(2, 1));
    observations.add(&context(&[0.5, 0.5]), [step(0, 0, 0), step(0, 0, 1)]).unwrap();
    let found = log_likelihood(&mixture, &observations).unwrap();
    assert!((found.total() - (0.75_f64 * 0.25).ln()).abs() < 1e-15 && found.impossible == 0);
    observations.add(&context(&[1.0, 0.0]), [step(0, 0, 1), step(0, 0, 0)]).unwrap();
    let found = log_likelihood(&mixture, &observations).unwrap();
    assert_eq!((found.total(), found.impossible, found.transitions), (f64::NEG_INFINITY, 1, 4));
    assert!((found.possible - (0.75_f64 * 0.25).ln()).abs() < 1e-15);
}

#[test]
fn the_same_bytes_for_any_number_of_threads() {
    let model = mixture_model();
    let observations = mixed_walks(&model, 30, 200, 3);
    let by_cluster = Structure::Clusters { centres: Centres::Found { number: 3, seed: 4 }, shrinkage: 1.0 };
    for structure in [Structure::Pooled, by_cluster, mixture()] {
        let learn = |n| with_threads(n, || estimate(&observations, &structure, &Prior::default()).unwrap());
        let alone = learn(1);
        assert!([2, 7].into_iter().all(|n| learn(n) == alone), "{structure:?}");
    }
    let runs = [1, 2, 7].map(|n| with_threads(n, || garnet_rounds(2, mixture(), true)));
    assert!(runs.iter().all(|run| *run == runs[0]));
}

#[test]
fn models_keep_everything_else() {
    let model = Driving::default().build().unwrap();
    let observations = |space: &ContextSpace| {
        let mut observations = Observations::new(model.pairs().clone());
        let c = space.context([0.2, 0.3, 0.5]).unwrap();
        observations.add(&c, walk(&model, &c, 2_000, 0, 0).transitions()).unwrap();
        observations
    };
    let observations = observations(model.context_space());
    for structure in [Structure::Pooled, mixture()] {
        let learned = estimate(&observations, &structure, &Prior::default()).unwrap();
        let own = model.clone().with_dynamics(learned.dynamics.clone()).unwrap();
        assert_eq!(own.dynamics(), &learned.dynamics);
        assert_eq!((own.names(), own.initial(), own.criterion()), (model.names(), model.initial(), model.criterion()));
        assert_eq!((own.features(), own.context_space()), (model.features(), model.context_space()));
        // Support of a policy, against its definition.
        let mdp = own.mdp(&observations.contexts()[0]).unwrap();
        let support = learned.support_of(&observations.contexts()[0]).unwrap();
        let policy = Policy::uniform(own.pairs());
        let visits = evaluate::occupancy(&mdp, &policy).unwrap();
        let thin = visits.of_pairs().iter().enumerate().filter(|(pair, _)| support.of(*pair) < 3.0).map(|(_, d)| d);
        let share = thin.sum::<f64>() / visits.of_pairs().iter().sum::<f64>();
        let found = unsupported_share(&mdp, &policy, &support, 3.0).unwrap();
        assert!((found - share).abs() < 1e-12 && found > 0.01 && found < 0.99, "{found}");
        assert_eq!(unsupported_share(&mdp, &policy, &support, 0.0).unwrap(), 0.0);
    }
    // Nothing was declared about the contexts: a mixture declares them.
    let garnet = Garnet { n_states: 6, n_actions: 1, ..Garnet::default() }.build().unwrap();
    let mixed = Garnet { n_states: 6, n_actions: 1, n_kernels: 3, ..Garnet::default() }.build().unwrap();
    let own = garnet.clone().with_dynamics(mixed.dynamics().clone()).unwrap();
    assert_eq!(own.context_space(), &ContextSpace::Simplex { dimension: 3 });
    assert!(matches!(garnet.with_dynamics(model.dynamics().clone()), Err(Error::IncompatibleKernels { .. })));
}

#[test]
fn nonsense_is_refused_with_its_place() {
    let says = |error: Error, words: &str| assert!(error.to_string().contains(words), "{error} does not say {words:?}");
    let mut counts = TransitionCounts::new(Arc::new(Pairs::from_mask(2, 2, &[true, false, true, true]).unwrap()));
    counts.add(step(0, 0, 1)).unwrap();
    says(counts.add(step(5, 0, 0)).unwrap_err(), "transition 1: state 5 does not exist; the model has 2 states");
    says(counts.add(step(0, 1, 0)).unwrap_err(), "state 0: action 1 is not admissible there");
    says(counts.add(step(0, 0, 9)).unwrap_err(), "state 0, action 0: successor state 9 does not exist");
    says(
        counts.merge(&few()).unwrap_err(),
        "transition counts has shape 4 states with 8 pairs; expected 2 states with 3",
    );
    assert_eq!(counts.n_transitions(), 1);
    // In a row of transitions, those before stay counted.
    let mut row = counts.clone();
    says(
        row.add_all([step(1, 1, 0), step(5, 0, 0), step(1, 1, 0)]).unwrap_err(),
        "transition 2: state 5 does not exist",
    );
    assert_eq!(row.iter().collect::<Vec<_>>(), [(0, 1, 1), (2, 0, 1)]);
    let learn = |prior: Prior| maximum_likelihood(&counts, &prior).unwrap_err();
    says(learn(Prior::new(0.0, PriorMean::Stay)), "state 1, action 0 was never seen and the prior has no strength");
    says(learn(Prior::new(-1.0, PriorMean::Stay)), "prior strength = -1");
    says(learn(Prior::new(f64::NAN, PriorMean::Stay)), "prior strength = NaN");
    says(learn(Prior::new(1.0, PriorMean::Unknown(StateId(7)))), "unknown state has shape 7; expected below 2");
    says(learn(Prior::new(1.0, PriorMean::Unknown(StateId(0)))), "action 0 was seen to lead from it to state 1");
    let other = Kernel::from_dense(1, 1, &[1.0], None).unwrap();
    says(learn(Prior::new(1.0, PriorMean::Kernel(Arc::new(other)))), "differ from those counted over");

    let seen = |contexts: &[&[f64]]| {
        let mut observations = Observations::new(all_pairs(2, 1));
        contexts.iter().for_each(|c| observations.add(&context(c), [step(0, 0, 1)]).unwrap());
        observations
    };
    let mut observations = seen(&[&[0.5, 0.5]]);
    says(observations.add(&context(&[1.0]), []).unwrap_err(), "context of a transition has shape [1]; expected [2]");
    let default = Prior::default();
    let mix = |contexts: &[&[f64]]| estimate(&seen(contexts), &mixture(), &default).unwrap_err();
    let negative = mix(&[&[0.5, 0.5], &[1.2, -0.2]]);
    says(negative, "context [1.2, -0.2]: entry 1 is -0.2; entries on the simplex are not negative");
    says(mix(&[&[1.2, -0.2]]), "learn clusters of contexts instead");
    says(mix(&[&[0.7, 0.7]]), "it sums to 1.4");
    says(mix(&[]), "contexts of a mixture has shape 0; expected at least 1");
    let settings = |max_iterations, tolerance| {
        let structure = Structure::Mixture(ExpectationMaximisation { max_iterations, tolerance });
        estimate(&seen(&[&[1.0]]), &structure, &default).unwrap_err()
    };
    says(settings(0, 0.1), "max_iterations = 0");
    says(settings(1, -0.1), "tolerance = -0.1");
    let unseen = Prior::new(0.0, PriorMean::Stay);
    says(estimate(&seen(&[&[1.0]]), &mixture(), &unseen).unwrap_err(), "state 1, action 0 was never seen");

    let by_cluster =
        |centres, shrinkage| estimate(&two_kinds(), &Structure::Clusters { centres, shrinkage }, &default).unwrap_err();
    let found = |number| Centres::Found { number, seed: 0 };
    says(by_cluster(found(0), 1.0), "clusters has shape 0; expected between 1 and 5");
    says(by_cluster(found(6), 1.0), "clusters has shape 6; expected between 1 and 5");
    says(by_cluster(found(2), f64::INFINITY), "shrinkage = inf");
    says(by_cluster(Centres::Given(vec![vec![0.0, 1.0]]), 1.0), "centre of a cluster has shape [2]; expected [1]");
    says(by_cluster(Centres::Given(vec![]), 1.0), "kernels has shape 0");
    let dynamics = Dynamics::Shared(Kernel::from_dense(1, 1, &[1.0], None).unwrap());
    says(log_likelihood(&dynamics, &observations).unwrap_err(), "differ from those of the transitions");
}

/// A small random model, learned in so many rounds of ten contexts.
fn garnet_rounds(n_rounds: usize, structure: Structure, own_roll_outs: bool) -> FittedOnline {
    let model = Garnet { n_states: 30, n_actions: 3, n_successors: 3, n_features: 3, seed: 5, ..Garnet::default() };
    let model = model.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap();
    let truth = LinearMapping::new(2, 3, signed_point(6, 9)).unwrap();
    let contexts = model.context_space().sample(10 * n_rounds, 4).unwrap();
    let demonstrations = sampled(&model, &truth, &contexts, 40, 2);
    let batches: Vec<Vec<Demonstration>> = demonstrations.chunks(10).map(<[_]>::to_vec).collect();
    let examination = Examination::new(&model, &truth, model.context_space().sample(20, 77).unwrap()).unwrap();
    let world = SimulatedEnvironment { model: &model, roll_outs: 2, transitions: 40, seed: 8 };
    let environment = own_roll_outs.then_some(&world as &dyn Environment);
    let how = DynamicsLearning { structure, start: Some(1.0), ..DynamicsLearning::default() };
    // Descent goes on from the mapping of the round before.
    let settings = Settings::new(Method::Adaptive(Adaptive::default()));
    fit_online(&model, &batches, &how, &settings, environment, Some(&examination), &mut ()).unwrap()
}

#[test]
fn a_round_goes_on_from_the_one_before() {
    let (one, two) = (garnet_rounds(1, Structure::Pooled, true), garnet_rounds(2, Structure::Pooled, true));
    assert_eq!(two.rounds[0], one.rounds[0]);
    assert_eq!(one.fitted.settings.initial, None);
    assert_eq!(two.fitted.settings.initial.as_deref(), Some(one.fitted.mapping().unwrap().values()));
    // What the second round saw was foreseen as well as the dynamics of the first foresee it.
    let both = two.learned.log_likelihood.transitions;
    assert_eq!(two.rounds[1].foreseen.unwrap().transitions, both - one.learned.log_likelihood.transitions);
    // ξ̂ is a mean of the model's uniform start with weight 1 and of the ten first states.
    let start = one.model.initial();
    assert!(
        start.iter().all(|&p| (0..=10).any(|n| (p - (f64::from(n) + 1.0 / 30.0) / 11.0).abs() < 1e-12)),
        "{start:?}"
    );
    assert!((start.iter().sum::<f64>() - 1.0).abs() < 1e-12 && start.iter().any(|&p| p > 0.05));
}

#[test]
fn the_agent_is_tried_as_it_stands() {
    let model = mixture_model();
    let truth = LinearMapping::new(3, 5, signed_point(15, 1)).unwrap();
    let contexts = model.context_space().sample(4, 4).unwrap();
    let demonstrations = sampled(&model, &truth, &contexts, 30, 2);
    let how = DynamicsLearning::default();
    let mut online = OnlineDynamics::new(&model, how);
    let tried = std::cell::RefCell::new(Vec::new());
    let world = |visit: u64, c: &Context, policy: &Policy| {
        tried.borrow_mut().push((visit, c.clone(), policy.clone()));
        Ok(vec![walk(&model, c, 5, 0, visit)])
    };
    online.observe(&demonstrations[..2], Some(&world)).unwrap();
    let (fitted, _) = online.learn(&Settings::default(), None, &mut ()).unwrap();
    let planned = act(online.model().unwrap(), &fitted.agent, &contexts[2..]).unwrap();
    online.observe(&demonstrations[2..], Some(&world)).unwrap();
    let uniform = Policy::uniform(model.pairs());
    let expected = [&uniform, &uniform, &planned[0][0].policy, &planned[1][0].policy];
    let expected: Vec<_> = (0..4).map(|i| (i as u64, contexts[i].clone(), expected[i].clone())).collect();
    assert_eq!(*tried.borrow(), expected);
    assert_eq!(online.learned().unwrap().log_likelihood.transitions, 4 * (30 + 5));
    // A world that answers with paths of another model is refused.
    let elsewhere = |_: u64, _: &Context, _: &Policy| {
        Ok(vec![Trajectory { states: vec![StateId(0), StateId(99)], actions: vec![ActionId(0)] }])
    };
    let refused = online.observe(&demonstrations[..1], Some(&elsewhere)).unwrap_err();
    assert!(refused.to_string().contains("state of a trajectory has shape 99; expected below 6"), "{refused}");
}

/// Driving, with demonstrations in 60 contexts; the agent tries itself where a world is asked for.
#[test]
fn reward_and_dynamics_are_learned_together() {
    let model = Driving::default().build().unwrap();
    let truth = Driving::online_mapping();
    let contexts = model.context_space().sample(60, 4).unwrap();
    let demonstrations = sampled(&model, &truth, &contexts, 40, 2);
    let examination = Examination::new(&model, &truth, model.context_space().sample(40, 77).unwrap()).unwrap();
    let settings = Settings::new(Method::Adaptive(Adaptive::default()));
    let problem = Problem::new(&model, &train(&demonstrations, 60), &Estimator::default()).unwrap();
    let known = fit(&problem, &settings, Watch::default(), &mut ()).unwrap();
    let known = examination.score(&known.agent).unwrap().value_ratio;

    let batches: Vec<Vec<Demonstration>> = demonstrations.chunks(10).map(<[_]>::to_vec).collect();
    let learn = |environment: Option<&dyn Environment>| {
        let how = DynamicsLearning::default();
        fit_online(&model, &batches, &how, &settings, environment, Some(&examination), &mut ()).unwrap()
    };
    let world = SimulatedEnvironment { model: &model, roll_outs: 3, transitions: 40, seed: 8 };
    let run = learn(Some(&world));
    let acting: Vec<f64> = run.rounds.iter().map(|round| round.acting.unwrap().value_ratio).collect();
    assert!(acting[5] > known - 0.01 && acting[5] > acting[0] + 0.04, "{acting:?}, {known} with known dynamics");
    let (first, last) = (&run.rounds[0], &run.rounds[5]);
    assert_eq!((first.round, last.round, last.demonstrations, first.foreseen), (1, 6, 60, None));
    assert_eq!((last.transitions, last.agent_transitions), (60 * 40 * 4, 60 * 40 * 3));
    assert!(last.pairs_seen > first.pairs_seen && last.unsupported_share < 0.2 * first.unsupported_share);
    // What was a surprise in the second round no longer is in the last.
    let foreseen = |round: usize| run.rounds[round].foreseen.unwrap();
    assert!(foreseen(5).impossible < foreseen(1).impossible);
    assert_eq!((run.model.dynamics(), run.model.features()), (&run.learned.dynamics, model.features()));
    assert_eq!(run.learned.log_likelihood, last.log_likelihood);

    // An expert's transitions alone say nothing about what experts avoid, and the record says so.
    let alone = learn(None);
    let last = &alone.rounds[5];
    assert!(last.unsupported_share > 0.3 && last.acting.unwrap().value_ratio < 0.9, "{last:?}");
    assert_eq!(last.agent_transitions, 0);
}

#[test]
fn rounds_in_every_structure() {
    let (alone, tried) = (garnet_rounds(4, Structure::Pooled, false), garnet_rounds(4, Structure::Pooled, true));
    let value = |run: &FittedOnline| run.rounds[3].acting.unwrap().value_ratio;
    assert!(value(&tried) > 0.99 && value(&tried) > value(&alone), "{} {}", value(&alone), value(&tried));
    assert!(tried.rounds[0].acting.unwrap().value_ratio < value(&tried));
    let number = 2;
    let by_cluster = Structure::Clusters { centres: Centres::Found { number, seed: 0 }, shrinkage: 5.0 };
    // Neither has more to find than the one kernel of the truth, but both have more numbers to find it with.
    for structure in [by_cluster, mixture()] {
        let run = garnet_rounds(4, structure, true);
        assert!(value(&run) > 0.97, "{}", value(&run));
    }
    let nothing =
        fit_online(&mixture_model(), &[], &DynamicsLearning::default(), &Settings::default(), None, None, &mut ());
    assert!(nothing.unwrap_err().to_string().contains("rounds of demonstrations has shape 0; expected at least 1"));
}
