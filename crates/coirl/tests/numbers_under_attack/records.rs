//! What is computed from records and tables: off-policy estimates, learned dynamics, clusters, cohorts.

use crate::attempt::attempt;
use crate::effort::{Tally, effort, seed};
use crate::extremes::{NONSENSE, NUMBERS, TINIEST, contexts, discounts, distribution, numbers, one_of};
use coirl::clustering::{KMeans, Points};
use coirl::demos::Evidence;
use coirl::dynamics::{
    Centres, ExpectationMaximisation, Observations, Prior, PriorMean, Structure, Transition, Unseen, estimate,
};
use coirl::model::{ActionId, ContextSpace, Dynamics, Kernel, Pairs, StateId};
use coirl::resampling::Resampling;
use coirl_cohort::off_policy::{
    AssessmentSettings, Behaviour, BehaviourSettings, Comparable, Episode, FittedQSettings, Outcome, Record,
    StepPolicy, assess, recorded_outcome,
};
use coirl_cohort::{BuildStage, Spec, Table, build, lint};
use rand::{Rng, RngExt};
use std::ops::ControlFlow;
use std::sync::Arc;

fn check_numbers(what: &str, values: impl IntoIterator<Item = f64>) -> Result<(), String> {
    match values.into_iter().find(|x| !x.is_finite()) {
        Some(x) => Err(format!("{what} of {x}")),
        None => Ok(()),
    }
}

fn record(random: &mut impl Rng) -> (Vec<Episode>, f64) {
    let n = one_of(&[1, 2, 4, 12], random);
    let largest = one_of(&NUMBERS, random);
    let episode = |i: usize| {
        let steps = random.random_range(1..4);
        Episode {
            patient: i as u64,
            states: (0..steps).map(|_| random.random_range(0..3)).collect(),
            actions: (0..steps).map(|_| random.random_range(0..2)).collect(),
            rewards: match random.random_bool(0.5) {
                true => numbers(steps, random),
                false => (0..steps).map(|_| largest * random.random_range(-1.0..1.0)).collect(),
            },
        }
    };
    ((0..n).map(episode).collect(), one_of(&discounts(), random))
}

#[test]
fn off_policy_estimates_are_numbers_or_refused_with_a_reason() {
    let mut tally = Tally::new("off-policy evaluation", "records");
    for i in 0..effort(300) {
        let mut random = tally.random(i);
        let (episodes, discount) = record(&mut random);
        let steps: usize = episodes.iter().map(|episode| episode.states.len()).sum();
        let shares: Vec<f64> = (0..steps).flat_map(|_| distribution(2, &mut random)).collect();
        let covariates: Vec<f32> =
            (0..steps).map(|_| one_of(&[0.0, 1.0, 1e-40, 1e38, -1e38, 0.5], &mut random)).collect();
        let behaviour = BehaviourSettings {
            comparable: one_of(
                &[Comparable::State, Comparable::Neighbours { k: 0 }, Comparable::Neighbours { k: usize::MAX }],
                &mut random,
            ),
            strength: one_of(&[None, Some(TINIEST), Some(1e308), Some(f64::NAN)], &mut random),
            folds: one_of(&[0, 2, 10, usize::MAX], &mut random),
            seed: 1,
        };
        let settings = AssessmentSettings {
            least_effective_sample_size: 0.0,
            most_weight_bias: f64::MAX,
            most_calibration_error: 2.0,
            most_unseen: 1.0,
            weight_cap: one_of(&[None, Some(TINIEST), Some(1e308), Some(f64::INFINITY)], &mut random),
            fitted_q: FittedQSettings {
                folds: one_of(&[1, 1, 2, 5, usize::MAX], &mut random),
                max_iterations: one_of(&[0, 1, 10_000], &mut random),
                tolerance: one_of(&[0.0, TINIEST, 1e-6, 1e308, f64::NAN], &mut random),
                ..FittedQSettings::default()
            },
            resampling: Resampling { resamples: one_of(&[0, 2, 20], &mut random), ..Resampling::default() },
            ..AssessmentSettings::default()
        };
        let name = format!(
            "seed {}, attempt {i}: {episodes:?} {discount} {shares:?} {covariates:?} {behaviour:?} {settings:?}",
            seed()
        );
        let checked = attempt(&name, move || -> Result<(), String> {
            let Ok(record) = Record::new(3, 2, discount, episodes) else { return Ok(()) };
            let Ok(record) = record.with_covariates(1, covariates) else { return Ok(()) };
            if let Ok(recorded) = recorded_outcome(&record, &settings.resampling) {
                check_numbers("a mean return", [recorded.value])?;
            }
            let Ok(policy) = StepPolicy::new(&record, shares) else { return Ok(()) };
            let Ok(behaviour) = Behaviour::estimate(&record, &behaviour) else { return Ok(()) };
            check_numbers("a probability", behaviour.policy().probabilities().iter().copied())?;
            let Ok(found) = assess(&record, &behaviour, &policy, &settings) else { return Ok(()) };
            for outcome in [
                &found.importance_sampling,
                &found.weighted,
                &found.per_decision,
                &found.fitted_q,
                &found.doubly_robust,
                &found.weighted_doubly_robust,
            ] {
                match outcome {
                    Outcome::Estimated { value, interval } => {
                        check_numbers("an estimate", [*value])?;
                        check_numbers(
                            "an end of an interval",
                            interval.iter().flat_map(|ends| [ends.lower, ends.upper]),
                        )?;
                    }
                    Outcome::Refused { reason } if reason.is_empty() => return Err("refused without a reason".into()),
                    Outcome::Refused { .. } => {}
                }
            }
            Ok(())
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn records_of_rewards_whose_sums_overflow_are_refused_by_step() {
    let episode = |reward| Episode { patient: 1, states: vec![0, 0], actions: vec![0, 0], rewards: vec![1.0, reward] };
    let refused = Record::new(1, 1, 1.0, vec![episode(1e308)]).unwrap_err().to_string();
    assert!(refused.contains("step 1") && refused.contains("the reward is 1"), "{refused}");
    let record = Record::new(1, 1, 1.0, vec![episode(1e280)]).unwrap();
    assert!(recorded_outcome(&record, &Resampling::default()).unwrap().value.is_finite());
}

#[test]
fn too_few_patients_to_cross_fit_are_told_as_such() {
    let episode = |patient| Episode { patient, states: vec![0], actions: vec![0], rewards: vec![1.0] };
    let record = Record::new(1, 1, 1.0, (0..3).map(episode).collect()).unwrap();
    let behaviour = Behaviour::known(&record, StepPolicy::uniform(&record)).unwrap();
    let refused =
        assess(&record, &behaviour, &StepPolicy::uniform(&record), &AssessmentSettings::default()).unwrap_err();
    let message = refused.to_string();
    assert!(message.contains("3 patients") && message.contains("5 folds"), "{message}");
}

fn rows_sum_to_one(kernel: &Kernel) -> Result<(), String> {
    for pair in 0..kernel.pairs().len() {
        let sum: f64 = kernel.successors(pair).map(|(_, p)| p).sum();
        if !((sum - 1.0).abs() < 1e-9) || kernel.successors(pair).any(|(_, p)| !(p >= 0.0)) {
            return Err(format!("pair {pair} sums to {sum}"));
        }
    }
    Ok(())
}

#[test]
fn learned_dynamics_are_distributions() {
    let mut tally = Tally::new("learned dynamics", "estimates");
    for i in 0..effort(400) {
        let mut random = tally.random(i);
        let dimension = random.random_range(1..=3);
        let n = one_of(&[1, 2, 6], &mut random);
        let shown = contexts(dimension, n, &mut random);
        let transitions: Vec<Vec<(u32, u32, u32)>> = (0..n)
            .map(|_| {
                let steps = one_of(&[0, 1, 5], &mut random);
                let step = |_| (random.random_range(0..3), random.random_range(0..2), random.random_range(0..3));
                (0..steps).map(step).collect()
            })
            .collect();
        let strength =
            one_of(&[0.0, -0.0, TINIEST, 1e-310, 1.0, 1e300, 1e308, f64::NAN, f64::INFINITY, -1.0], &mut random);
        let mean = one_of(&[0, 1, 2], &mut random);
        let structure = match random.random_range(0..3) {
            0 => Structure::Pooled,
            1 => Structure::Clusters {
                centres: match random.random_bool(0.5) {
                    true => Centres::Given(vec![numbers(dimension, &mut random), numbers(dimension, &mut random)]),
                    false => Centres::Found { number: one_of(&[0, 1, 2, usize::MAX], &mut random), seed: 1 },
                },
                shrinkage: one_of(&[0.0, TINIEST, 1e308, f64::NAN], &mut random),
            },
            _ => Structure::Mixture(ExpectationMaximisation {
                max_iterations: one_of(&[0, 1, 1000], &mut random),
                tolerance: one_of(&[0.0, TINIEST, 1e308, f64::NAN, -1.0], &mut random),
            }),
        };
        let name = format!("seed {}, attempt {i}: {shown:?} {transitions:?} {strength} {mean} {structure:?}", seed());
        let checked = attempt(&name, move || -> Result<(), String> {
            let mut observations = Observations::new(Arc::new(Pairs::all(3, 2).unwrap()));
            for (values, steps) in shown.iter().zip(&transitions) {
                let Ok(context) = ContextSpace::Any.context(values.clone()) else { return Ok(()) };
                let step = |&(state, action, next)| Transition {
                    state: StateId(state),
                    action: ActionId(action),
                    next: StateId(next),
                };
                if observations.add(&context, steps.iter().map(step)).is_err() {
                    return Ok(());
                }
            }
            let mean = [PriorMean::SeenFromState, PriorMean::Stay, PriorMean::Unknown(StateId(2))][mean].clone();
            let prior = Prior { unseen: Unseen::PriorMean, ..Prior::new(strength, mean) };
            let Ok(learned) = estimate(&observations, &structure, &prior) else { return Ok(()) };
            check_numbers("a log-likelihood", [learned.log_likelihood.possible])?;
            match &learned.dynamics {
                Dynamics::Shared(kernel) => rows_sum_to_one(kernel),
                Dynamics::Clusters(clusters) => clusters.kernels().iter().try_for_each(rows_sum_to_one),
                Dynamics::Mixture(mixture) => {
                    (0..mixture.n_kernels()).try_for_each(|i| rows_sum_to_one(&mixture.base(i).unwrap()))
                }
            }
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn clusters_of_extreme_rows_are_nearest_or_refused() {
    let mut tally = Tally::new("k-means", "tables");
    let extremes = [0.0, -0.0, 1.0, 1e-45, 1e-40, 1e-20, 1e19, 1e20, 1e38, -1e38, f32::MAX, f32::MIN];
    for i in 0..effort(400) {
        let mut random = tally.random(i);
        let (n, width) = (one_of(&[1, 2, 7, 40], &mut random), random.random_range(1..=3));
        let size = one_of(&extremes, &mut random);
        let mut values: Vec<f32> = match random.random_range(0..3) {
            0 => (0..n * width).map(|_| one_of(&extremes, &mut random)).collect(),
            1 => (0..n * width).map(|_| size * random.random_range(-1.0..1.0)).collect(),
            _ => vec![size; n * width],
        };
        if random.random_bool(0.05) {
            values[0] = one_of(&NONSENSE, &mut random) as f32;
        }
        let settings = KMeans {
            clusters: one_of(&[0, 1, 2, 3, 40, usize::MAX], &mut random),
            restarts: one_of(&[0, 1, 3], &mut random),
            max_iterations: one_of(&[0, 1, 300, usize::MAX], &mut random),
            tolerance: one_of(&[0.0, TINIEST, 1e308, f64::NAN], &mut random),
            seed: 1,
        };
        let name = format!("seed {}, attempt {i}: {values:?} in rows of {width}, {settings:?}", seed());
        let checked = attempt(&name, move || -> Result<(), String> {
            let Ok(points) = Points::new(values, width) else { return Ok(()) };
            let Ok(found) = settings.fit(&points) else { return Ok(()) };
            check_numbers("a centroid", found.centroids.values().iter().copied())?;
            check_numbers("an inertia", [found.inertia])?;
            let counted: usize = found.counts.iter().map(|&n| n as usize).sum();
            if counted != points.n_rows() {
                return Err(format!("{counted} rows of {} counted", points.n_rows()));
            }
            let square = |row: &[f32], centre: &[f64]| -> f64 {
                row.iter().zip(centre).map(|(x, c)| (f64::from(*x) - c).powi(2)).sum()
            };
            for (row, &own) in points.rows().zip(&found.assignment) {
                let least = found.centroids.rows().map(|centre| square(row, centre)).fold(f64::INFINITY, f64::min);
                let given = square(row, found.centroids.rows().nth(own as usize).unwrap());
                if given > least * (1.0 + 1e-9) {
                    return Err(format!("row {row:?} is {given} from its own centre and {least} from another"));
                }
            }
            Ok(())
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}

const SPEC: &str = r#"
    discount = 0.9
    [table]
    stay = "stay"
    patient = "patient"
    time = "time"
    [context]
    fields = ["sex"]
    scale = "standardise"
    [state]
    measurements = ["x", "y"]
    clusters = 3
    [action]
    doses = ["dose"]
    levels = 2
    [outcome]
    column = "died"
    [dynamics]
    min_support = 1
    prior = 0.0
"#;

#[test]
fn cohorts_of_extreme_cells_are_numbers_or_refused() {
    let mut tally = Tally::new("cohorts", "tables");
    let cells = [0.0, -0.0, 1.0, 1e-310, 1e-45, 1e-30, 1e19, 1e30, 3e38, -3e38, f64::NAN];
    for i in 0..effort(60) {
        let mut random = tally.random(i);
        let mut rows: Vec<(String, String, f64, [f64; 5])> = Vec::new();
        let times = one_of(&[1.0, 1e-300, 1e300, 1e308, 0.0], &mut random);
        let odd = random.random_bool(0.5);
        for stay in 0..30 {
            let died = f64::from(u8::from(random.random_bool(0.3)));
            for t in 0..5 {
                let mut row = [f64::from(stay % 2), random.random(), random.random(), f64::from(t % 3), died];
                if random.random_bool(0.2) || (odd && stay == 3) {
                    row[random.random_range(0..4)] = one_of(&cells, &mut random);
                }
                rows.push((format!("s{stay}"), format!("p{}", stay % 20), f64::from(t) * times, row));
            }
        }
        let name = format!("seed {}, attempt {i}: {rows:?}", seed());
        let checked = attempt(&name, move || -> Result<(), String> {
            let spec = Spec::from_toml(SPEC).unwrap();
            let wanted = spec.columns();
            let mut table = Table::new(&wanted, true);
            for (stay, patient, time, cells) in &rows {
                let at = |name: &&str| {
                    ["sex", "x", "y", "dose", "died"]
                        .iter()
                        .position(|column| column == name)
                        .map_or(f64::NAN, |i| cells[i])
                };
                if table.push(stay, Some(patient), *time, wanted.iter().map(at)).is_err() {
                    return Ok(());
                }
            }
            let _ = lint(&table, &spec, 7);
            let Ok(cohort) = build(&table, &spec, 7, |_: BuildStage| ControlFlow::Continue(())) else { return Ok(()) };
            check_numbers("a feature", [cohort.model.features().max_abs()])?;
            check_numbers("a start", cohort.model.initial().iter().copied())?;
            let shown = cohort.train.demonstrations(&cohort.model).map_err(|error| error.to_string())?;
            for demonstration in shown.demonstrations() {
                check_numbers("a context", demonstration.context().values().iter().copied())?;
                if let Evidence::FeatureExpectations(mu) = demonstration.evidence() {
                    check_numbers("a feature expectation", mu.iter().copied())?;
                }
            }
            Ok(())
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}
