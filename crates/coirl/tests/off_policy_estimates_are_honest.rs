//! Off-policy estimates against the truth: on a record that holds every possible stay as often as its probability says, on random records
//! against a linear system, in coverage, and on the published sepsis process.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod clinicians;

use clinicians::Clinicians;
use coirl::resampling::{Interval, Resampling};
use coirl_cohort::off_policy::{
    Assessment, AssessmentSettings, Behaviour, BehaviourSettings, Comparable, Episode, FittedQSettings, Outcome,
    Record, StepPolicy, assess, recorded_outcome,
};
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not within {tolerance} of {expected}");
}

/// Refuses nothing but what has no value.
fn unguarded(folds: usize, resamples: usize) -> AssessmentSettings {
    AssessmentSettings {
        least_effective_sample_size: 0.0,
        most_weight_bias: f64::MAX,
        most_calibration_error: 2.0,
        most_unseen: 1.0,
        fitted_q: FittedQSettings { folds, tolerance: 1e-12, ..FittedQSettings::default() },
        resampling: Resampling { resamples, ..Resampling::default() },
        ..AssessmentSettings::default()
    }
}

fn outcomes(assessment: &Assessment) -> [&Outcome; 6] {
    [
        &assessment.importance_sampling,
        &assessment.weighted,
        &assessment.per_decision,
        &assessment.fitted_q,
        &assessment.doubly_robust,
        &assessment.weighted_doubly_robust,
    ]
}

fn values(assessment: &Assessment) -> [f64; 6] {
    outcomes(assessment).map(|outcome| outcome.value().unwrap_or(f64::NAN))
}

/// Three decisions in one of two conditions; all probabilities are quarters. State 2t + condition.
struct Tiny;

const QUARTER: f64 = 0.25;

impl Tiny {
    /// Quarters with which action 1 is taken.
    const BEHAVIOUR: [u32; 6] = [1, 2, 3, 1, 2, 3];
    const SCORED: [f64; 6] = [0.7, 0.1, 0.5, 0.0, 1.0, 0.4];
    const DISCOUNT: f64 = 0.9;

    /// Quarters of going on in condition 0, going on in condition 1, and the end.
    fn next(state: usize, action: usize) -> [u32; 3] {
        match (state + 2 * action) % 4 {
            0 => [2, 1, 1],
            1 => [1, 2, 1],
            2 => [0, 3, 1],
            _ => [3, 0, 1],
        }
    }

    fn reward(state: usize, action: usize) -> f64 {
        [0.3, -1.0, 0.5, 2.0, 0.0, 1.0][state] + if action == 1 { 0.7 - 0.3 * state as f64 } else { 0.0 }
    }

    /// By the recursion of dynamic programming.
    fn value(state: usize, policy: &[f64]) -> f64 {
        let of_action = |action: usize| {
            let [good, bad, _] = Self::next(state, action).map(|quarters| QUARTER * f64::from(quarters));
            let later = if state / 2 == 2 {
                0.0
            } else {
                let first = 2 * (state / 2) + 2;
                good * Self::value(first, policy) + bad * Self::value(first + 1, policy)
            };
            Self::reward(state, action) + Self::DISCOUNT * later
        };
        (1.0 - policy[state]) * of_action(0) + policy[state] * of_action(1)
    }

    fn truth(policy: &[f64]) -> f64 {
        0.5 * (Self::value(0, policy) + Self::value(1, policy))
    }

    /// Every stay, as often as 2 · 16³ times its probability.
    fn enumerate(stay: &Episode, state: usize, times: u32, all: &mut Vec<Episode>) {
        for (action, share) in [4 - Self::BEHAVIOUR[state], Self::BEHAVIOUR[state]].into_iter().enumerate() {
            let mut longer = stay.clone();
            longer.states.push(state as u32);
            longer.actions.push(action as u32);
            longer.rewards.push(Self::reward(state, action));
            let [good, bad, end] = Self::next(state, action);
            let first = 2 * (state / 2) + 2;
            let ended = if state / 2 == 2 { 4 } else { end };
            // A stay that ends early stands for all of its sixteenths later on.
            for _ in 0..times * share * ended {
                all.push(Episode { patient: all.len() as u64, ..longer.clone() });
            }
            if state / 2 < 2 {
                let below = times / 16 * share;
                Self::enumerate(&longer, first, below * good, all);
                Self::enumerate(&longer, first + 1, below * bad, all);
            }
        }
    }

    fn record() -> Record {
        let mut all = Vec::new();
        (0..2).for_each(|start| Self::enumerate(&Episode::default(), start, 256, &mut all));
        Record::new(6, 2, Self::DISCOUNT, all).unwrap()
    }

    fn by_state(record: &Record, policy: &[f64]) -> StepPolicy {
        let rows: Vec<f64> = policy.iter().flat_map(|&p| [1.0 - p, p]).collect();
        StepPolicy::by_state(record, &rows).unwrap()
    }

    fn behaviour() -> Vec<f64> {
        Self::BEHAVIOUR.iter().map(|&quarters| QUARTER * f64::from(quarters)).collect()
    }
}

#[test]
fn on_the_whole_population_every_estimator_has_the_exact_value() {
    let record = Tiny::record();
    assert_eq!(record.n_episodes(), 2 * 4096);
    let behaviour = Behaviour::known(&record, Tiny::by_state(&record, &Tiny::behaviour())).unwrap();
    for policy in [&Tiny::SCORED[..], &[1.0; 6], &[0.0; 6], &Tiny::behaviour()] {
        let assessment = assess(&record, &behaviour, &Tiny::by_state(&record, policy), &unguarded(1, 2)).unwrap();
        let truth = Tiny::truth(policy);
        values(&assessment).into_iter().for_each(|value| near(value, truth, 1e-9));
        near(assessment.mean_weight, 1.0, 1e-12);
    }
    near(recorded_outcome(&record, &Resampling::default()).unwrap().value, Tiny::truth(&Tiny::behaviour()), 1e-12);
}

#[test]
fn the_behaviour_scored_by_itself_has_the_mean_return() {
    let record = random_record(40, 3);
    let behaviour = Behaviour::estimate(&record, &BehaviourSettings::default()).unwrap();
    let mean = recorded_outcome(&record, &Resampling::default()).unwrap();
    let assessment = assess(&record, &behaviour, behaviour.policy(), &unguarded(2, 50)).unwrap();
    let [plain, weighted, per_decision, ..] = values(&assessment);
    [plain, weighted, per_decision].into_iter().for_each(|value| near(value, mean.value, 1e-12));
    assert_eq!(assessment.effective_sample_size, 40.0);
    assert_eq!(assessment.capped_episodes, 0);
}

const STATES: usize = 4;
const ACTIONS: usize = 3;

/// Stays of one to six steps in four states with three actions, of which states know two or three.
fn random_record(stays: u64, seed: u64) -> Record {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut stay = |patient| {
        let steps = random.random_range(1..7);
        let states: Vec<u32> = (0..steps).map(|_| random.random_range(0..STATES as u32)).collect();
        let actions = states.iter().map(|&state| random.random_range(0..if state == 0 { 2 } else { 3 })).collect();
        let rewards = (0..steps).map(|_| random.random_range(-1.0..1.0)).collect();
        Episode { patient, states, actions, rewards }
    };
    Record::new(STATES, ACTIONS, 0.8, (0..stays).map(&mut stay).collect()).unwrap()
}

/// Rows that depend on more than the state.
fn random_policy(record: &Record, seed: u64) -> StepPolicy {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let kinds = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.6, 0.4]];
    let rows = (0..record.n_steps()).flat_map(|_| kinds[random.random_range(0..3_usize)]).collect();
    StepPolicy::new(record, rows).unwrap()
}

/// Gauss's elimination with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&x, &y| a[x][i].abs().total_cmp(&a[y][i].abs())).unwrap();
        a.swap(i, pivot);
        b.swap(i, pivot);
        for row in i + 1..n {
            let factor = a[row][i] / a[i][i];
            for column in i..n {
                a[row][column] -= factor * a[i][column];
            }
            b[row] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|column| a[i][column] * b[column]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

#[test]
fn fitted_q_evaluation_solves_the_process_that_the_record_shows() {
    for seed in 0..20 {
        let record = random_record(25, seed);
        let policy = random_policy(&record, seed);
        let pair = |state: usize, action: usize| state * ACTIONS + action;
        let mut seen = [0.0; STATES * ACTIONS];
        let of_step = |step: usize| pair(record.states()[step] as usize, record.actions()[step] as usize);
        (0..record.n_steps()).for_each(|step| seen[of_step(step)] += 1.0);
        // One equation per pair: n Q = Σ (r + γ Σ π Q'), or the mean of the state for a pair never seen.
        let mut a = vec![vec![0.0; STATES * ACTIONS]; STATES * ACTIONS];
        let mut b = vec![0.0; STATES * ACTIONS];
        for state in 0..STATES {
            let visits: f64 = (0..ACTIONS).map(|action| seen[pair(state, action)]).sum();
            for action in 0..ACTIONS {
                let own = pair(state, action);
                a[own][own] = 1.0;
                if seen[own] == 0.0 {
                    (0..ACTIONS).for_each(|other| a[own][pair(state, other)] -= seen[pair(state, other)] / visits);
                }
            }
        }
        for episode in 0..record.n_episodes() {
            let steps = record.steps(episode);
            for step in steps.clone() {
                let own = of_step(step);
                b[own] += record.rewards()[step] / seen[own];
                if step + 1 < steps.end {
                    let next = record.states()[step + 1] as usize;
                    for (action, share) in policy.row(step + 1).iter().enumerate() {
                        a[own][pair(next, action)] -= record.discount() * share / seen[own];
                    }
                }
            }
        }
        let q = solve(a, b);
        let value = |episode: usize| {
            let start = record.steps(episode).start;
            let state = record.states()[start] as usize;
            policy.row(start).iter().enumerate().map(|(action, share)| share * q[pair(state, action)]).sum::<f64>()
        };
        let expected = (0..record.n_episodes()).map(value).sum::<f64>() / record.n_episodes() as f64;
        let behaviour = Behaviour::estimate(&record, &BehaviourSettings::default()).unwrap();
        let assessment = assess(&record, &behaviour, &policy, &unguarded(1, 2)).unwrap();
        near(assessment.fitted_q.value().unwrap(), expected, 1e-9);
        assert!(assessment.sweeps.converged && assessment.unseen > 0.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn effective_stays_are_between_one_and_all(seed in any::<u64>(), stays in 2..30_u64, epsilon in 0.01..1.0_f64) {
        let record = random_record(stays, seed);
        let behaviour = Behaviour::estimate(&record, &BehaviourSettings::default()).unwrap();
        let policy = random_policy(&record, seed).softened(epsilon, behaviour.policy()).unwrap();
        let assessment = assess(&record, &behaviour, &policy, &unguarded(1, 2)).unwrap();
        let effective = assessment.effective_sample_size;
        prop_assert!((1.0 - 1e-12..=stays as f64 * (1.0 + 1e-12)).contains(&effective), "{}", effective);
        // A mean of recorded returns stays among them.
        let returns = (0..record.n_episodes()).map(|i| {
            record.rewards()[record.steps(i)].iter().rev().fold(0.0, |later, r| r + record.discount() * later)
        });
        let (least, most) = returns.fold((f64::MAX, f64::MIN), |(least, most), g| (least.min(g), most.max(g)));
        let weighted = assessment.weighted.value().unwrap();
        prop_assert!(least - 1e-9 <= weighted && weighted <= most + 1e-9);
        // No softening left is the behaviour itself.
        let whole = policy.softened(1.0, behaviour.policy()).unwrap();
        prop_assert_eq!(&whole, behaviour.policy());
    }
}

/// One decision between two drugs of which 0.7 and 0.4 survive; given evenly, scored 8 : 2.
fn drugs(patients: u64, seed: u64) -> (Record, Behaviour, StepPolicy) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut stay = |patient| {
        let action = random.random_range(0..2_u32);
        let survives = random.random::<f64>() < [0.7, 0.4][action as usize];
        Episode { patient, states: vec![0], actions: vec![action], rewards: vec![f64::from(u8::from(survives))] }
    };
    let record = Record::new(1, 2, 1.0, (0..patients).map(&mut stay).collect()).unwrap();
    let even = Behaviour::known(&record, StepPolicy::uniform(&record)).unwrap();
    let scored = StepPolicy::by_state(&record, &[0.8, 0.2]).unwrap();
    (record, even, scored)
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    const REPETITIONS: u64 = 300;
    let truth = 0.8 * 0.7 + 0.2 * 0.4;
    let mut held = [0_usize; 6];
    for seed in 0..REPETITIONS {
        let (record, behaviour, scored) = drugs(300, seed);
        let assessment = assess(&record, &behaviour, &scored, &unguarded(5, 200)).unwrap();
        let holds = |outcome: &Outcome| outcome.interval().is_some_and(|ends| ends.contains(truth));
        held.iter_mut().zip(outcomes(&assessment)).for_each(|(held, outcome)| *held += usize::from(holds(outcome)));
    }
    // Of 95 %, with a standard deviation of 1.3 points over the repetitions and a point or so lost to 200 resamples.
    for held in held {
        let share = held as f64 / REPETITIONS as f64;
        assert!((0.90..=0.99).contains(&share), "{share}");
    }
}

#[test]
fn intervals_without_refitting_leave_out_the_chance_of_the_fit() {
    let (record, behaviour, scored) = drugs(300, 1);
    let mut settings = unguarded(1, 200);
    let refitted = assess(&record, &behaviour, &scored, &settings).unwrap();
    settings.fitted_q.refit = false;
    let kept = assess(&record, &behaviour, &scored, &settings).unwrap();
    assert_eq!(refitted.fitted_q.value(), kept.fitted_q.value());
    let width = |outcome: &Outcome| outcome.interval().map_or(f64::NAN, Interval::width);
    // Everybody starts in the same state, so that without refitting nothing is left to vary.
    assert!(width(&kept.fitted_q) < 1e-12 && width(&refitted.fitted_q) > 0.05);
}

/// Stays of four steps in ten states under known probabilities of three actions.
fn known_behaviour(patients: u64, seed: u64) -> (Record, Vec<f64>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let shares: Vec<f64> = (0..10)
        .flat_map(|state| {
            let first = 0.05 + 0.06 * f64::from(state);
            [first, 0.3, 0.7 - first]
        })
        .collect();
    let mut stay = |patient| {
        let states: Vec<u32> = (0..4).map(|_| random.random_range(0..10)).collect();
        let mut act = |state: &u32| {
            let (u, row) = (random.random::<f64>(), &shares[*state as usize * 3..]);
            if u < row[0] { 0 } else { 1 + u32::from(u >= row[0] + row[1]) }
        };
        let actions = states.iter().map(&mut act).collect();
        Episode { patient, states, actions, rewards: vec![0.0, 0.0, 0.0, 1.0] }
    };
    let record = Record::new(10, 3, 1.0, (0..patients).map(&mut stay).collect()).unwrap();
    (record, shares)
}

#[test]
fn true_probabilities_are_calibrated_and_wrong_ones_are_not() {
    let mut excess = Vec::new();
    for seed in 0..60 {
        let (record, shares) = known_behaviour(250, seed);
        let policy = StepPolicy::by_state(&record, &shares).unwrap();
        let calibration = Behaviour::known(&record, policy).unwrap().calibration().clone();
        assert!(calibration.log_loss < calibration.overall_log_loss);
        assert_eq!(calibration.bins.iter().map(|bin| bin.count).sum::<usize>(), 3000);
        excess.push(calibration.excess() / calibration.noise);
    }
    let mean = excess.iter().sum::<f64>() / excess.len() as f64;
    // The error of one record varies by about a third of the noise; the mean of sixty by a twentieth.
    assert!(mean.abs() < 0.15, "{mean}");

    let (record, shares) = known_behaviour(250, 1);
    let turned: Vec<f64> = shares.chunks_exact(3).flat_map(|row| [row[2], row[1], row[0]]).collect();
    let wrong = Behaviour::known(&record, StepPolicy::by_state(&record, &turned).unwrap()).unwrap();
    assert!(wrong.calibration().excess() > 0.1);
    let right = StepPolicy::by_state(&record, &shares).unwrap();
    let assessment = assess(&record, &wrong, &right, &AssessmentSettings::default()).unwrap();
    let Outcome::Refused { reason } = &assessment.weighted else { panic!("refused") };
    assert!(reason.contains("calibration"), "{reason}");
    assert!(assessment.fitted_q.value().is_some());
}

#[test]
fn counted_probabilities_come_near_the_true_ones() {
    let (record, shares) = known_behaviour(4000, 5);
    let behaviour = Behaviour::estimate(&record, &BehaviourSettings::default()).unwrap();
    for step in (0..record.n_steps()).step_by(97) {
        let state = record.states()[step] as usize;
        let pairs = behaviour.policy().row(step).iter().zip(&shares[state * 3..]);
        // 1,600 visits to a state: four standard deviations are 0.05.
        pairs.for_each(|(found, expected)| near(*found, *expected, 0.05));
    }
    assert!(behaviour.calibration().excess() < 0.01);
}

/// A patient's steps are alike in covariates and action: whoever looked at them would foresee everything.
#[test]
fn neighbours_are_other_patients() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let (mut stays, mut covariates) = (Vec::new(), Vec::new());
    for patient in 0..400 {
        let x: f32 = random.random();
        let action = u32::from(random.random::<f64>() < 0.25);
        stays.push(Episode { patient, states: vec![0; 5], actions: vec![action; 5], rewards: vec![0.0; 5] });
        (0..5).for_each(|_| covariates.extend([x, 3.0]));
    }
    let record = Record::new(1, 2, 1.0, stays).unwrap();
    let settings = BehaviourSettings {
        comparable: Comparable::Neighbours { k: 100 },
        strength: Some(1.0),
        ..BehaviourSettings::default()
    };
    assert!(Behaviour::estimate(&record, &settings).is_err(), "no covariates");
    let record = record.with_covariates(2, covariates).unwrap();
    let behaviour = Behaviour::estimate(&record, &settings).unwrap();
    let treated: Vec<f64> = (0..record.n_steps()).map(|step| behaviour.policy().row(step)[1]).collect();
    // Twenty other patients each: a standard deviation of 0.1.
    assert!(treated.iter().all(|p| (0.0..0.65).contains(p)));
    near(treated.iter().sum::<f64>() / treated.len() as f64, 0.25, 0.05);
    assert!(behaviour.calibration().log_loss > 0.5);
}

#[test]
fn refusals_fire_and_say_why() {
    let reason = |outcome: &Outcome| match outcome {
        Outcome::Refused { reason } => reason.clone(),
        Outcome::Estimated { value, .. } => panic!("{value}"),
    };
    let (record, behaviour, scored) = drugs(300, 1);
    let fine = assess(&record, &behaviour, &scored, &AssessmentSettings::default()).unwrap();
    assert!(outcomes(&fine).iter().all(|outcome| outcome.value().is_some()) && fine.warnings.is_empty());

    let (few, even, scored) = drugs(60, 1);
    let together = AssessmentSettings { fitted_q_alone: false, ..AssessmentSettings::default() };
    let with_weights = assess(&few, &even, &scored, &together).unwrap();
    assert!(reason(&with_weights.fitted_q).contains("nothing can contradict"));
    assert!(reason(&with_weights.fitted_q).contains("effective stays"));
    assert_eq!(assess(&record, &behaviour, &drugs(300, 1).2, &together).unwrap(), fine);
    let few = assess(&few, &even, &scored, &AssessmentSettings::default()).unwrap();
    assert!(reason(&few.weighted).contains("effective stays"));
    assert!(reason(&few.weighted_doubly_robust).contains("effective stays"));
    assert!(few.fitted_q.value().is_some());

    // Nobody took action 2.
    let stay = |patient| Episode { patient, states: vec![0], actions: vec![(patient % 2) as u32], rewards: vec![1.0] };
    let unseen = Record::new(1, 3, 1.0, (0..400).map(stay).collect()).unwrap();
    let even = Behaviour::known(&unseen, StepPolicy::uniform_over_seen(&unseen)).unwrap();
    let always =
        assess(&unseen, &even, &StepPolicy::always(&unseen, 2).unwrap(), &AssessmentSettings::default()).unwrap();
    assert!(outcomes(&always).iter().all(|outcome| reason(outcome).contains("never recorded")));
    assert!(reason(&always.weighted).contains("effective stays"));
    let partly = StepPolicy::by_state(&unseen, &[0.5, 0.45, 0.05]).unwrap();
    let partly = assess(&unseen, &even, &partly, &AssessmentSettings::default()).unwrap();
    assert!(partly.warnings[0].contains("never recorded") && partly.fitted_q.value().is_some());

    // Weights that cannot average to one: half of the policy is on what nobody does, in a state of its own.
    let allowed = AssessmentSettings { most_unseen: 1.0, ..AssessmentSettings::default() };
    let half = StepPolicy::by_state(&unseen, &[0.25, 0.25, 0.5]).unwrap();
    let half = assess(&unseen, &even, &half, &allowed).unwrap();
    assert_eq!(half.effective_sample_size, 400.0);
    near(half.mean_weight, 0.5, 1e-12);
    assert!(reason(&half.weighted).contains("mean weight"));

    // A reward collected for ever: the record always comes back to state 0 by action 0.
    let circle = |patient| Episode { patient, states: vec![0; 5], actions: vec![0, 0, 0, 0, 1], rewards: vec![1.0; 5] };
    let circles = Record::new(1, 2, 1.0, (0..10).map(circle).collect()).unwrap();
    let behaviour = Behaviour::estimate(&circles, &BehaviourSettings::default()).unwrap();
    let mut capped = unguarded(1, 2);
    capped.fitted_q.max_iterations = 100;
    let for_ever = assess(&circles, &behaviour, &StepPolicy::always(&circles, 0).unwrap(), &capped).unwrap();
    assert!(reason(&for_ever.fitted_q).contains("100 sweeps") && for_ever.sweeps.residual >= 1.0);
    assert!(Behaviour::known(&circles, StepPolicy::always(&circles, 0).unwrap()).is_err());
}

#[test]
fn capped_weights_are_counted() {
    let (record, behaviour, scored) = drugs(300, 1);
    let treated = record.actions().iter().filter(|action| **action == 0).count();
    let capped = AssessmentSettings { weight_cap: Some(1.5), ..unguarded(1, 2) };
    let capped = assess(&record, &behaviour, &scored, &capped).unwrap();
    assert_eq!(capped.capped_episodes, treated);
    let weights = treated as f64 * 1.5 + (300 - treated) as f64 * 0.4;
    near(capped.mean_weight, weights / 300.0, 1e-12);
    assert!(capped.warnings.iter().any(|warning| warning.contains("capped")));
}

#[test]
fn settings_out_of_range_are_refused() {
    let (record, behaviour, scored) = drugs(10, 1);
    let refused = |change: fn(&mut AssessmentSettings)| {
        let mut settings = AssessmentSettings::default();
        change(&mut settings);
        assess(&record, &behaviour, &scored, &settings).is_err()
    };
    assert!(!refused(|_| {}));
    assert!(refused(|s| s.fitted_q.folds = 0) && refused(|s| s.fitted_q.folds = 11));
    assert!(refused(|s| s.fitted_q.max_iterations = 0) && refused(|s| s.fitted_q.tolerance = 0.0));
    assert!(refused(|s| s.resampling.resamples = 1) && refused(|s| s.resampling.level = 1.0));
    assert!(refused(|s| s.weight_cap = Some(0.0)) && refused(|s| s.most_unseen = f64::NAN));
    let (other, ..) = drugs(11, 1);
    assert!(assess(&other, &behaviour, &scored, &AssessmentSettings::default()).is_err());
    assert!(scored.softened(1.5, behaviour.policy()).is_err());
    assert!(StepPolicy::new(&record, vec![0.4; 20]).is_err() && StepPolicy::always(&record, 2).is_err());
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let record = random_record(60, 2);
            let behaviour = Behaviour::estimate(&record, &BehaviourSettings::default()).unwrap();
            let assessment = assess(&record, &behaviour, &random_policy(&record, 2), &unguarded(5, 30)).unwrap();
            format!("{assessment:?}")
        })
    };
    assert_eq!(run(1), run(3));
}

/// 3,000 stays. The clinicians' stays show the optimal policy's actions too rarely for weights: they are refused, and what they would have
/// said is wrong. Fitted Q evaluation comes within 0.03, three of its standard deviations and its bias.
#[test]
fn on_the_sepsis_process_weights_are_refused_and_fitted_q_comes_near() {
    let ward = Clinicians::new().unwrap();
    let record = ward.record(3000, 1).unwrap();
    let truth = ward.truth(&ward.optimal).unwrap();
    near(truth, 0.8751, 5e-5);
    let behaviour = ward.known_behaviour(&record).unwrap();
    assert!(behaviour.calibration().excess() < 0.01);
    let optimal = ward.step_policy(&record, &ward.optimal).unwrap();
    let mut settings = AssessmentSettings::default();
    settings.resampling.resamples = 20;
    let assessment = assess(&record, &behaviour, &optimal, &settings).unwrap();
    near(assessment.fitted_q.value().unwrap(), truth, 0.03);
    for outcome in [&assessment.importance_sampling, &assessment.weighted, &assessment.weighted_doubly_robust] {
        assert!(outcome.value().is_none());
    }
    let recorded = recorded_outcome(&record, &Resampling::default()).unwrap();
    // Four standard errors of a share of 3,000.
    near(recorded.value, 0.7818, 0.03);
    assert!(assessment.fitted_q.interval().unwrap().lower > recorded.interval.unwrap().upper);
}
