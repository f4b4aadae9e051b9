//! What demonstrations determine is told from what they do not, and contexts that matter from those that do not.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;
mod engines;
mod rooms;

use coirl::demos::{Demonstration, Estimator, Train};
use coirl::domains::{Driving, Garnet};
use coirl::inspect::{
    Bootstrap, BootstrapSettings, ContextHelps, ContextHelpsSettings, Determination, DeterminationSettings, Entry,
    Progress, Reason, Verdict, bootstrap, context_helps, determine,
};
use coirl::learn::{Adaptive, Bundle, Choice, FormChoice, Problem, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, Context, ContextSpace, Features};
use coirl::plan::{Policy, evaluate};
use demonstrated::{exact, sampled, signed_point};
use engines::{engines, owner, watched};
use proptest::prelude::*;
use rooms::{circle, rooms};
use std::ops::ControlFlow;

fn patient(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn bundle() -> Settings {
    Settings::new(Method::Bundle(Bundle::default()))
}

fn problem<'a>(model: &'a Cmdp, demonstrations: Vec<Demonstration>) -> Problem<'a> {
    Problem::new(model, &Train::new(demonstrations), &Estimator::default()).unwrap()
}

fn fitted(problem: &Problem<'_>) -> LinearMapping {
    fit(problem, &bundle(), Watch::default(), &mut ()).unwrap().mapping().unwrap().clone()
}

fn determined(problem: &Problem<'_>, settings: &DeterminationSettings) -> Determination {
    determine(problem, &fitted(problem), settings, &mut patient).unwrap()
}

fn entry(found: &Determination, field: usize, feature: usize) -> &Entry {
    found.entries.iter().find(|entry| (entry.field, entry.feature) == (field, feature)).unwrap()
}

/// Contexts (t, 1 − t).
fn along_a_line(model: &Cmdp, n: usize) -> Vec<Context> {
    let context = |i: usize| (i as f64 + 0.5) / n as f64;
    (0..n).map(|i| model.context_space().context([context(i), 1.0 - context(i)]).unwrap()).collect()
}

/// ⟨W, Ḡ⟩: what the experts gain over chance.
fn gain(problem: &Problem<'_>, mapping: &LinearMapping) -> f64 {
    let gain = |i: usize| {
        let mdp = problem.mdp(i).unwrap();
        let chance = evaluate::feature_expectations(&mdp, &Policy::uniform(mdp.pairs())).unwrap();
        let w = mapping.weights(problem.context(i)).unwrap();
        problem.data().expectations(i).unwrap().iter().zip(&chance).zip(&w).map(|((x, y), w)| w * (x - y)).sum::<f64>()
    };
    (0..problem.len()).map(gain).sum::<f64>() / problem.len() as f64
}

/// Rooms in 24 directions, beside a copy of the first feature and a trap that has a feature of its own.
fn with_copy_and_trap() -> (Cmdp, LinearMapping) {
    let mut features: Vec<Vec<f64>> = circle(24).into_iter().map(|at| vec![at[0], at[1], at[0], 0.0]).collect();
    features.push(vec![0.0, 0.0, 0.0, 1.0]);
    let truth = LinearMapping::new(2, 4, vec![1.0, 0.3, 0.0, -1.0, -0.4, 1.0, 0.0, -1.0]).unwrap();
    (rooms(&features, 2), truth)
}

#[test]
fn a_redundant_feature_and_one_that_nobody_touches() {
    let (model, truth) = with_copy_and_trap();
    let problem = problem(&model, exact(&model, &truth, &along_a_line(&model, 60)));
    let found = determined(&problem, &DeterminationSettings::default());
    assert!(found.converged && found.complete && found.entries.len() == 8, "{found:?}");
    // What the copy gains the original can lose, in either context field.
    assert_eq!(found.null_dimension, Some(2));
    for field in 0..2 {
        let [original, known, copy, trap] = [0, 1, 2, 3].map(|feature| entry(&found, field, feature));
        assert_eq!((original.determined, &original.reason), (false, &Some(Reason::FeaturesDependent(vec![2]))));
        assert_eq!((copy.determined, &copy.reason), (false, &Some(Reason::FeaturesDependent(vec![0]))));
        assert_eq!((trap.determined, &trap.reason), (false, &Some(Reason::FeatureNeverShown)));
        assert!(known.determined && known.reason.is_none(), "{known:?}");
        // The trap may be as bad as it likes.
        assert!(trap.interval.lower < -5.0 && trap.interval.upper < 2.0, "{trap:?}");
    }
    assert_eq!((entry(&found, 0, 1).sign(), entry(&found, 1, 1).sign()), (1, 1));
}

#[test]
fn without_copy_and_trap_all_is_determined() {
    let model = rooms(&circle(24), 2);
    let truth = LinearMapping::new(2, 2, vec![1.0, 0.3, -0.4, 1.0]).unwrap();
    let problem = problem(&model, exact(&model, &truth, &along_a_line(&model, 60)));
    let found = determined(&problem, &DeterminationSettings::default());
    assert_eq!(found.null_dimension, Some(0));
    assert!(found.entries.iter().all(|entry| entry.determined && entry.interval.width() < 0.5), "{found:?}");
    assert_eq!([0, 1].map(|field| entry(&found, field, 0).sign()), [1, -1]);
}

#[test]
fn short_paths_determine_nothing() {
    let model = engines(0.9999);
    let problem = problem(&model, watched(&model, 1));
    let found = determine(&problem, &owner(), &DeterminationSettings::default(), &mut patient).unwrap();
    assert!(found.unseen > 0.5, "{found:?}");
    for entry in &found.entries {
        assert_eq!((entry.determined, &entry.reason), (false, &Some(Reason::PathsTooShort)));
        assert_eq!(entry.interval, entry.allowed);
    }
}

#[test]
fn what_lies_beyond_the_paths_widens_the_ranges() {
    // The same engines watched eight times as long, or one and a half times: the shorter, the more is possible.
    let model = engines(0.97);
    let width = |longer: usize| {
        let problem = problem(&model, watched(&model, longer));
        let settings = DeterminationSettings { slack: Some(0.01), ..DeterminationSettings::default() };
        let found = determine(&problem, &owner(), &settings, &mut patient).unwrap();
        assert!((found.slack - (0.01 + found.unseen * 1.01)).abs() < 1e-12, "{found:?}");
        (found.unseen, found.entries.iter().map(|entry| entry.interval.width()).sum::<f64>())
    };
    let [(more, wide), (less, narrow)] = [2, 8].map(width);
    assert!(more > less && wide > narrow, "{more} {wide}, {less} {narrow}");
}

#[test]
fn the_width_is_that_of_the_geometry() {
    // One context, room 0 of n chosen: the reward points within π/n of it. Acting at random gains nothing on a circle, so
    // ⟨W, Ḡ⟩ fixes the part along the room, and the part across is at most tan(π/n) times as much.
    for n in [6, 24] {
        let model = rooms(&circle(n), 1);
        let context = model.context_space().context([1.0]).unwrap();
        let shown = exact(&model, &LinearMapping::new(1, 2, vec![1.0, 0.0]).unwrap(), &[context]);
        let settings = DeterminationSettings { tolerance: 1e-7, ..DeterminationSettings::default() };
        let found = determined(&problem(&model, shown), &settings);
        let (along, across) = (entry(&found, 0, 0).interval, entry(&found, 0, 1).interval);
        assert!(along.width() < 1e-4 && along.lower > 0.5, "{along:?}");
        let limit = along.upper * (std::f64::consts::PI / n as f64).tan();
        assert!((across.upper - limit).abs() < 1e-4 && (across.lower + limit).abs() < 1e-4, "{across:?} not {limit}");
    }
}

#[test]
fn fields_that_say_nothing_and_features_that_nobody_changes() {
    // The third field is always zero, the first two always equal; the third feature is the same everywhere.
    let features: Vec<Vec<f64>> = circle(12).into_iter().map(|at| vec![at[0], at[1], 0.0]).collect();
    let model = rooms(&features, 3).with_context_space(ContextSpace::Any).unwrap();
    let contexts: Vec<Context> =
        (1..9).map(|i| model.context_space().context([f64::from(i), f64::from(i), 0.0]).unwrap()).collect();
    let truth = LinearMapping::new(3, 3, vec![1.0, 0.2, 0.0, 0.5, 0.4, 0.0, 0.0, 0.0, 0.0]).unwrap();
    let problem = problem(&model, exact(&model, &truth, &contexts));
    let found = determined(&problem, &DeterminationSettings::default());
    assert!(found.entries.iter().all(|entry| !entry.determined));
    // Only the sum of the first two rows counts, and of it two features.
    assert_eq!(found.null_dimension, Some(9 - 2));
    assert_eq!(entry(&found, 0, 0).reason, Some(Reason::FieldsDependent));
    assert_eq!(entry(&found, 2, 1).reason, Some(Reason::FieldAlwaysZero));
    let alone: Vec<Context> = (1..9).map(|i| model.context_space().context([f64::from(i)]).unwrap()).collect();
    let truth = LinearMapping::new(1, 3, vec![1.0, 0.2, 0.0]).unwrap();
    let problem = Problem::new(&model, &Train::new(exact(&model, &truth, &alone)), &Estimator::default()).unwrap();
    let found = determined(&problem, &DeterminationSettings::default());
    assert_eq!(entry(&found, 0, 2).reason, Some(Reason::FeatureFixed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// From exact demonstrations, the expert's own mapping is inside every interval, converged or not.
    #[test]
    fn the_truth_is_inside(seed in 0..10_000_u64, n_kernels in 1..3_usize, rounds in 1..12_usize, n in 2..12_usize) {
        let (d, k) = (2, 3);
        let n_kernels = if n_kernels == 1 { 1 } else { d };
        let garnet = Garnet { n_states: 8, n_actions: 3, n_features: k, n_kernels, seed, discount: 0.8, ..Garnet::default() };
        let mut model = garnet.build().unwrap();
        if n_kernels == 1 {
            model = model.with_context_space(ContextSpace::Simplex { dimension: d }).unwrap();
        }
        let truth = LinearMapping::new(d, k, signed_point(d * k, seed)).unwrap();
        let problem = problem(&model, exact(&model, &truth, &model.context_space().sample(n, seed).unwrap()));
        let mapping = fitted(&problem);
        let settings = DeterminationSettings { max_rounds: rounds, ..DeterminationSettings::default() };
        let found = determine(&problem, &mapping, &settings, &mut patient).unwrap();
        let size = mapping.values().iter().map(|w| w * w).sum::<f64>().sqrt();
        let scale = gain(&problem, &mapping) / size / gain(&problem, &truth);
        let scaled: Vec<f64> = truth.values().iter().map(|w| scale * w).collect();
        prop_assume!(scaled.iter().map(|w| w * w).sum::<f64>().sqrt() < settings.radius);
        for entry in &found.entries {
            let w = scaled[entry.field * k + entry.feature];
            let slack = 1e-5 * settings.radius;
            prop_assert!(entry.interval.lower - slack <= w && w <= entry.interval.upper + slack, "{w}: {entry:?}");
            prop_assert!(entry.interval.lower >= entry.allowed.lower - 1e-9 && entry.interval.upper <= entry.allowed.upper + 1e-9);
        }
    }
}

/// Weights that everybody has are determined as those of a column of ones would be.
#[test]
fn what_everybody_has_is_one_field_more() {
    let model = rooms(&circle(12), 2).with_context_space(ContextSpace::Any).unwrap();
    let context = |values: &[f64]| model.context_space().context(values.to_vec()).unwrap();
    let truth = LinearMapping::new(2, 2, vec![0.6, 0.2, -0.3, 0.8]).unwrap();
    let written: Vec<Context> = (1..9).map(|i| context(&[f64::from(i) / 4.0, 1.0])).collect();
    let column = problem(&model, exact(&model, &truth, &written));
    let (by_field, common) = truth.values().split_at(2);
    let with_intercept = LinearMapping::new(1, 2, by_field.to_vec()).unwrap().with_intercept(common.to_vec()).unwrap();
    assert_eq!(with_intercept.with_intercept_as_row().unwrap(), truth);
    let shown = written.iter().enumerate().map(|(i, written)| {
        let mu = column.data().expectations(i).unwrap().to_vec();
        Demonstration::from_feature_expectations(&model, context(&written.values()[..1]), mu).unwrap()
    });
    let short = problem(&model, shown.collect());
    let settings = DeterminationSettings::default();
    let expected = determine(&column, &truth, &settings, &mut patient).unwrap();
    let found = determine(&short, &with_intercept, &settings, &mut patient).unwrap();
    assert_eq!(found.entries, expected.entries);
    assert_eq!(found.n_parameters, 4);
}

/// A weight of years is small beside one that everybody has, and may matter as much: only what adds little is called nothing much.
#[test]
fn small_weights_of_large_numbers_are_not_called_determined() {
    let model = rooms(&circle(12), 2).with_context_space(ContextSpace::Any).unwrap();
    let years: Vec<f64> = (0..8).map(|i| 20.0 + 8.0 * f64::from(i)).collect();
    let contexts: Vec<Context> = years.iter().map(|&y| model.context_space().context([y, 1.0]).unwrap()).collect();
    let truth = LinearMapping::new(2, 2, vec![0.01, 0.0, -0.3, 0.8]).unwrap();
    let problem = problem(&model, exact(&model, &truth, &contexts));
    let found = determine(&problem, &truth, &DeterminationSettings::default(), &mut patient).unwrap();
    let by_year = entry(&found, 0, 0);
    assert!(by_year.interval.lower < 0.0 && by_year.interval.upper < 0.08, "{by_year:?}");
    assert!(!by_year.determined, "{by_year:?}");
}

#[test]
fn a_mapping_that_explains_nothing_and_a_caller_who_stops() {
    let (model, truth) = with_copy_and_trap();
    let problem = problem(&model, exact(&model, &truth, &along_a_line(&model, 20)));
    let opposite = LinearMapping::new(2, 4, truth.values().iter().map(|w| -w).collect()).unwrap();
    let settings = DeterminationSettings::default();
    assert!(determine(&problem, &opposite, &settings, &mut patient).is_err());
    let stopped = determine(&problem, &truth, &settings, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(coirl::Error::Interrupted { done: 1, .. })));
    let few = DeterminationSettings { max_entries: 3, ..settings };
    let found = determine(&problem, &truth, &few, &mut patient).unwrap();
    assert!(!found.complete && found.entries.len() == 3);
}

fn compare(model: &Cmdp, truth: &LinearMapping, contexts: &[Context], settings: &Settings) -> ContextHelps {
    let problem = problem(model, exact(model, truth, contexts));
    context_helps(&problem, settings, &ContextHelpsSettings::default(), &mut patient).unwrap()
}

#[test]
fn on_the_road_contexts_matter() {
    let model = Driving::default().build().unwrap();
    let contexts = model.context_space().sample(60, 3).unwrap();
    // A fit of the default compares forms and penalties itself, on a thousand and a half states for each of many resamples.
    let settings = Settings::new(Method::Adaptive(Adaptive::default()));
    let found = compare(&model, &Driving::online_mapping(), &contexts, &settings);
    assert_eq!(found.verdict, Verdict::Helps, "{found:?}");
    assert!(found.difference > 0.0 && found.interval.contains(found.difference), "{found:?}");
    let same = LinearMapping::new(3, 3, [0.3, -0.8, -0.5].repeat(3)).unwrap();
    let found = compare(&model, &same, &contexts, &settings);
    assert_eq!(found.verdict, Verdict::DoesNotHelp, "{found:?}");
    assert!(found.without_context < 0.01);
}

/// Dynamics that follow the context are no reason for a reward that does.
#[test]
fn contexts_of_the_dynamics_alone_do_not_help() {
    let garnet = Garnet { n_states: 12, n_actions: 3, n_features: 3, n_kernels: 3, seed: 4, ..Garnet::default() };
    let model = garnet.build().unwrap();
    let contexts = model.context_space().sample(30, 5).unwrap();
    for settings in [Settings::default(), bundle()] {
        let same = LinearMapping::new(3, 3, [0.3, -0.8, -0.5].repeat(3)).unwrap();
        let found = compare(&model, &same, &contexts, &settings);
        assert_eq!(found.verdict, Verdict::DoesNotHelp, "{found:?}");
        let found = compare(&model, &LinearMapping::new(3, 3, signed_point(9, 8)).unwrap(), &contexts, &settings);
        assert_eq!(found.verdict, Verdict::Helps, "{found:?}");
    }
}

/// A small model in which experts are seen by trajectories.
fn small() -> (Cmdp, LinearMapping) {
    let garnet = Garnet { n_states: 12, n_actions: 3, n_features: 3, seed: 4, ..Garnet::default() };
    let space = ContextSpace::Simplex { dimension: 2 };
    let model = garnet.build().unwrap().with_context_space(space).unwrap();
    (model, LinearMapping::new(2, 3, signed_point(6, 8)).unwrap())
}

#[test]
fn the_share_has_no_unit() {
    let (model, truth) = small();
    let contexts = model.context_space().sample(30, 3).unwrap();
    let shares = |model: &Cmdp| {
        let problem = problem(model, sampled(model, &truth, &contexts, 40, 1));
        let found = context_helps(&problem, &bundle(), &ContextHelpsSettings::default(), &mut patient).unwrap();
        (found.with_context, found.without_context)
    };
    let Features::State { n_features, values } = model.features() else { panic!("features of states") };
    let larger = Features::per_state(model.n_states(), *n_features, values.iter().map(|x| 8.0 * x).collect()).unwrap();
    let scaled = Cmdp::new(model.dynamics().clone(), larger, model.initial().to_vec(), model.criterion()).unwrap();
    let (one, other) = (shares(&model), shares(&scaled));
    assert!((one.0 - other.0).abs() < 1e-6 && (one.1 - other.1).abs() < 1e-6, "{one:?} {other:?}");
}

#[test]
fn intervals_are_the_same_on_any_number_of_threads() {
    let (model, truth) = small();
    let seen = |n: usize| sampled(&model, &truth, &model.context_space().sample(n, 2).unwrap(), 40, 1);
    let run = |n: usize, seed: u64, threads: usize| {
        let settings = BootstrapSettings { replicates: 12, seed, ..BootstrapSettings::default() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bootstrap(&problem(&model, seen(n)), &bundle(), &settings, &mut patient).unwrap())
    };
    let found = run(20, 3, 1);
    assert_eq!(found, run(20, 3, 3));
    assert_ne!(found, run(20, 4, 3));
    assert_eq!((found.replicates, found.intervals.len()), (12, 6));
    assert!(found.intervals.iter().all(|i| i.lower <= i.upper && i.lower >= -1.0 && i.upper <= 1.0));
    // The more demonstrations, the narrower.
    let total = |found: &Bootstrap| found.intervals.iter().map(|i| i.width()).sum::<f64>();
    let more = run(160, 3, 3);
    assert!(total(&more) < 0.8 * total(&found), "{} {}", total(&more), total(&found));
}

/// The choice model learns weights that everybody has, and these have intervals too.
#[test]
fn weights_that_everybody_has_are_resampled_too() {
    let (model, _) = small();
    let model = model.with_context_space(ContextSpace::Any).unwrap();
    let context = |i: u32| model.context_space().context([f64::from(i) / 10.0, f64::from(i % 3)]).unwrap();
    let contexts: Vec<Context> = (0..12).map(context).collect();
    let truth = LinearMapping::new(2, 3, signed_point(6, 8)).unwrap();
    let problem = problem(&model, sampled(&model, &truth, &contexts, 20, 1));
    let settings = Settings::new(Method::Choice(Choice { mapping: FormChoice::Linear, ..Choice::default() }));
    let resamples = BootstrapSettings { replicates: 8, ..BootstrapSettings::default() };
    let found = bootstrap(&problem, &settings, &resamples, &mut patient).unwrap();
    assert_eq!((found.replicates, found.intervals.len()), (8, 9));
    assert!(found.intervals[6..].iter().all(|own| own.upper > own.lower), "{:?}", &found.intervals[6..]);
}
