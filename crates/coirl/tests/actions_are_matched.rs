//! Agreement of actions against a table small enough to count by hand, and against plain counting on random tables.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::resampling::{Interval, Resampling};
use coirl_cohort::agreement::{Decisions, Grouping, Matching, MatchingSettings, match_actions};
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeMap;

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

fn few() -> MatchingSettings {
    MatchingSettings {
        resampling: Resampling { resamples: 20, ..Resampling::default() },
        ..MatchingSettings::default()
    }
}

/// Two patients, 7 with three steps and 2 with one, mixed; four actions: two doses of two levels.
const PATIENTS: [u64; 4] = [7, 2, 7, 7];
const RECORDED: [u32; 4] = [0, 3, 0, 1];
#[rustfmt::skip]
const PROBABILITIES: [f64; 16] = [
    0.4, 0.1, 0.4, 0.1, // first of equals: 0
    0.1, 0.2, 0.3, 0.4, // 3
    0.0, 0.5, 0.3, 0.2, // 1
    0.0, 0.0, 1.0, 0.0, // 2
];

fn by_hand(scores: Option<&[f64]>) -> Matching {
    let decisions = Decisions {
        patients: &PATIENTS,
        recorded: &RECORDED,
        n_actions: 4,
        probabilities: &PROBABILITIES,
        scores,
        of_recorded: None,
        levels: &[4],
    };
    let sexes = Grouping { name: "sex".into(), labels: BTreeMap::from([(7, "f".into())]) };
    match_actions(&decisions, &[sexes], &few()).unwrap()
}

#[test]
fn four_steps_counted_by_hand() {
    let matching = by_hand(None);
    let all = &matching.overall;
    assert_eq!((all.patients, all.steps), (2, 4));
    near(all.top_one.value, 0.5);
    // One of three, and one of one.
    near(all.top_one_by_patient.value, (1.0 / 3.0 + 1.0) / 2.0);
    // The third step ranks 1, 2, 3; the fourth 2 alone.
    near(all.top_three.value, 0.5);
    // Levels 0–0, 3–3, 1–0 and 2–1.
    near(all.within_one.unwrap().value, 1.0);
    // Action 0: one of recorded 2 and predicted 1; 1: none of 1 and 1; 2: none of 0 and 1; 3: all.
    near(all.macro_f1.value, (2.0 / 3.0 + 0.0 + 0.0 + 1.0) / 4.0);
    near(all.log_loss.value, -(0.4_f64.ln() + 0.4_f64.ln() + 2.0 * 1e-6_f64.ln()) / 4.0);
    near(all.floored, 0.5);
    let [sex] = &matching.groupings[..] else { panic!("one grouping") };
    assert_eq!((sex.unlabelled, sex.groups.len(), sex.groups[0].label.as_str()), (Some(1), 1, "f"));
    near(sex.groups[0].agreement.as_ref().unwrap().top_one.value, 1.0 / 3.0);
    assert!(serde_json::to_string(&matching).unwrap().contains("\"top_three\""));
}

/// Groups of these sizes by one label each, the last of them without a label; the sizes that are still told.
fn told(sizes: &[usize], smallest: usize) -> Vec<Option<usize>> {
    let n: usize = sizes.iter().sum();
    let (patients, recorded): (Vec<u64>, Vec<u32>) = (0..n as u64).map(|patient| (patient, 0)).unzip();
    let probabilities = [1.0, 0.0].repeat(n);
    let decisions = Decisions {
        patients: &patients,
        recorded: &recorded,
        n_actions: 2,
        probabilities: &probabilities,
        scores: None,
        of_recorded: None,
        levels: &[],
    };
    let (last, labelled) = sizes.split_last().unwrap();
    let labels = labelled.iter().enumerate().flat_map(|(i, size)| std::iter::repeat_n(i.to_string(), *size));
    let grouping = Grouping { name: "group".into(), labels: (0..(n - last) as u64).zip(labels).collect() };
    let matching = match_actions(&decisions, &[grouping], &few()).unwrap().withholding(smallest);
    let grouping = &matching.groupings[0];
    let of_groups = grouping.groups.iter().map(|group| group.agreement.as_ref().map(|own| own.patients));
    of_groups.chain([grouping.unlabelled]).collect()
}

#[test]
fn small_groups_are_withheld_and_cannot_be_reckoned() {
    // Nothing is small, and nobody is no secret.
    assert_eq!(told(&[10, 30, 0], 10), [Some(10), Some(30), Some(0)]);
    assert_eq!(told(&[1, 2, 3], 0), [Some(1), Some(2), Some(3)]);
    // The total less the others would give away the 9: the next smallest goes as well.
    assert_eq!(told(&[9, 30, 40, 0], 10), [None, None, Some(40), Some(0)]);
    // Two that are small hide each other, unless both together are small.
    assert_eq!(told(&[9, 30, 5, 0], 10), [None, Some(30), None, Some(0)]);
    assert_eq!(told(&[4, 30, 5, 40, 0], 10), [None, None, None, Some(40), Some(0)]);
    // Those without a label count as well.
    assert_eq!(told(&[20, 30, 3], 10), [None, Some(30), None]);
    assert_eq!(told(&[3, 0], 10), [None, Some(0)]);
}

#[test]
fn scores_rank_what_a_deterministic_agent_leaves_at_zero() {
    let scores = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 3.0, 2.0, 1.0, 0.0];
    let matching = by_hand(Some(&scores));
    // The third step ranks 1, 2, 3 by probability still; the fourth 2 and then 0, 1 by score.
    near(matching.overall.top_three.value, 0.75);
    // The first action is unchanged: probability comes first.
    near(matching.overall.top_one.value, 0.5);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let good = Decisions {
        patients: &PATIENTS,
        recorded: &RECORDED,
        n_actions: 4,
        probabilities: &PROBABILITIES,
        scores: None,
        of_recorded: None,
        levels: &[2, 2],
    };
    let refused = |decisions: Decisions<'_>| match_actions(&decisions, &[], &few()).is_err();
    assert!(!refused(good));
    assert!(refused(Decisions { patients: &[], recorded: &[], probabilities: &[], ..good }));
    assert!(refused(Decisions { recorded: &[0, 1, 2, 4], ..good }) && refused(Decisions { recorded: &[0], ..good }));
    assert!(refused(Decisions { probabilities: &[0.2; 16], ..good }));
    assert!(refused(Decisions { scores: Some(&[f64::NAN; 16]), ..good }));
    assert!(refused(Decisions { levels: &[2, 3], ..good }));
    assert!(match_actions(&good, &[], &MatchingSettings { floor: 0.0, ..few() }).is_err());
}

struct Table {
    patients: Vec<u64>,
    recorded: Vec<u32>,
    predicted: Vec<u32>,
    probabilities: Vec<f64>,
}

const ACTIONS: u32 = 6;

/// Deterministic predictions, right in half of the cases.
fn table(steps: usize, patients: u64, seed: u64) -> Table {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let whose = (0..steps).map(|_| random.random_range(0..patients)).collect();
    let recorded: Vec<u32> = (0..steps).map(|_| random.random_range(0..ACTIONS)).collect();
    let mut predict = |action: &u32| if random.random() { *action } else { random.random_range(0..ACTIONS) };
    let predicted: Vec<u32> = recorded.iter().map(&mut predict).collect();
    let row = |action: &u32| (0..ACTIONS).map(|a| f64::from(u8::from(a == *action))).collect::<Vec<_>>();
    let probabilities = predicted.iter().flat_map(row).collect();
    Table { patients: whose, recorded, predicted, probabilities }
}

impl Table {
    fn decisions(&self) -> Decisions<'_> {
        Decisions {
            patients: &self.patients,
            recorded: &self.recorded,
            n_actions: ACTIONS as usize,
            probabilities: &self.probabilities,
            scores: None,
            of_recorded: None,
            levels: &[3, 2],
        }
    }

    fn count(&self, holds: impl Fn(u32, u32) -> bool) -> f64 {
        self.recorded.iter().zip(&self.predicted).filter(|(a, b)| holds(**a, **b)).count() as f64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn measures_are_those_of_plain_counting(seed in any::<u64>(), steps in 1..60_usize, patients in 1..8_u64) {
        let table = table(steps, patients, seed);
        let groups = Grouping {
            name: "parity".into(),
            labels: (0..patients).map(|p| (p, format!("{}", p % 2))).collect(),
        };
        let matching = match_actions(&table.decisions(), &[groups], &few()).unwrap();
        let all = &matching.overall;
        prop_assert!((all.top_one.value - table.count(|a, b| a == b) / steps as f64).abs() < 1e-12);
        prop_assert_eq!(all.top_one.value, all.top_three.value);
        let close = table.count(|a, b| (a / 2).abs_diff(b / 2) <= 1 && (a % 2).abs_diff(b % 2) <= 1) / steps as f64;
        prop_assert!((all.within_one.unwrap().value - close).abs() < 1e-12);
        let f1: Vec<f64> = (0..ACTIONS).filter_map(|i| {
            let both = table.count(|a, b| a == i && b == i);
            let (wrong, missed) = (table.count(|a, b| a != i && b == i), table.count(|a, b| a == i && b != i));
            (both + wrong + missed > 0.0).then(|| both / (both + 0.5 * (wrong + missed)))
        }).collect();
        prop_assert!((all.macro_f1.value - f1.iter().sum::<f64>() / f1.len() as f64).abs() < 1e-12);
        // Groups share out the patients, and their steps weigh the groups' shares.
        let own = || matching.groupings[0].groups.iter().filter_map(|group| group.agreement.as_ref());
        prop_assert_eq!(own().map(|g| g.patients).sum::<usize>(), all.patients);
        let hits: f64 = own().map(|g| g.top_one.value * g.steps as f64).sum();
        prop_assert!((hits - all.top_one.value * steps as f64).abs() < 1e-9);
    }
}

/// A patient's steps are all alike: four hundred patients, not four thousand steps.
#[test]
fn intervals_count_patients_not_steps() {
    let patients: Vec<u64> = (0..4000).map(|step| step / 10).collect();
    let recorded: Vec<u32> = patients.iter().map(|patient| (patient % 2) as u32).collect();
    let decisions = Decisions {
        patients: &patients,
        recorded: &recorded,
        n_actions: 2,
        probabilities: &[1.0, 0.0].repeat(4000),
        scores: None,
        of_recorded: None,
        levels: &[],
    };
    let settings = MatchingSettings { resampling: Resampling { resamples: 2000, ..Resampling::default() }, ..few() };
    let matching = match_actions(&decisions, &[], &settings).unwrap();
    let width = matching.overall.top_one.interval.map_or(f64::NAN, Interval::width);
    let expected = 2.0 * 1.96 * (0.25_f64 / 400.0).sqrt();
    assert!((width / expected - 1.0).abs() < 0.1, "{width} instead of {expected}");
    assert_eq!(matching.overall.within_one, None);
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    let table = table(500, 40, 3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| format!("{:?}", match_actions(&table.decisions(), &[], &few()).unwrap()))
    };
    assert_eq!(run(1), run(3));
}
