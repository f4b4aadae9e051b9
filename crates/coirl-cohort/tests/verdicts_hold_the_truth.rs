//! What is said of an agent beside trivial rules, against the truth: over two hundred small tables "better than" is wrong in at most one of twenty.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::demos::Trajectory;
use coirl::model::{ActionId, ContextSpace, StateId};
use coirl::random::stream;
use coirl::resampling::Resampling;
use coirl_cohort::agreement::{Answers, Standing};
use coirl_cohort::rules::{Rule, Rules, compare, log_loss_verdict, verdict};
use coirl_cohort::{RecordedStay, TrainStays, ValidationStays};
use rand::{Rng, RngExt};
use rayon::prelude::*;

const TABLES: u64 = 200;
/// Wrong verdicts that are put up with.
const MOST_WRONG: usize = 10;

fn settings() -> Resampling {
    Resampling { resamples: 500, ..Resampling::default() }
}

/// Probability that a step is easy for whoever guesses: differs by patient.
fn ease(random: &mut impl Rng) -> f64 {
    let u: [f64; 2] = [random.random(), random.random()];
    0.15 + 0.7 * (0.5 * (u[0] + u[1]))
}

/// Patients with some steps each, few of them with very many.
fn patients(n: u64, random: &mut impl Rng) -> Vec<u64> {
    let steps = |random: &mut dyn Rng| (1.0 + 6.0 / (0.05 + random.random::<f64>())) as usize / 3 + 1;
    (0..n).flat_map(|patient| std::iter::repeat_n(patient, steps(random))).collect()
}

/// Somebody who is right as often as a step is easy, plus `more`, and sure of it by half.
fn guesses(patients: &[u64], ease: &[f64], more: f64, random: &mut impl Rng) -> Answers {
    let same: Vec<bool> =
        patients.iter().map(|&patient| random.random::<f64>() < ease[patient as usize] + more).collect();
    let log_loss = same.iter().map(|&same| if same { 0.5_f64 } else { 0.1 }).map(|p| -p.ln()).collect();
    Answers { same, log_loss }
}

/// The standings of an agent that is `more` often right than the best of four rules, on a small table each.
fn standings(n: u64, of_agent: f64, of_rules: [f64; 4]) -> Vec<[Standing; 2]> {
    let table = |number: u64| {
        let mut random = stream(7, "tables with guesses", number);
        let patients = patients(n, &mut random);
        let ease: Vec<f64> = (0..n).map(|_| ease(&mut random)).collect();
        let agent = guesses(&patients, &ease, of_agent, &mut random);
        let names = [Rule::MostFrequent, Rule::MostFrequentOfState, Rule::Previous, Rule::Logistic];
        let rules: Vec<(Rule, Answers)> = names
            .into_iter()
            .zip(of_rules)
            .map(|(rule, more)| (rule, guesses(&patients, &ease, more, &mut random)))
            .collect();
        let compared = compare(&patients, &agent, &rules, &settings()).unwrap();
        [verdict(&compared), log_loss_verdict(&compared)].map(|own| own.unwrap().standing)
    };
    (0..TABLES).into_par_iter().map(table).collect()
}

fn times(standings: &[[Standing; 2]], measure: usize, wanted: Standing) -> usize {
    standings.iter().filter(|own| own[measure] == wanted).count()
}

#[test]
fn who_is_as_good_as_a_rule_is_hardly_ever_called_better_and_who_is_worse_never() {
    // One rule is as good and the others are far behind, which leaves the least to be beaten; or all are alike.
    for n in [8, 25, 60] {
        for rules in [[0.0, -0.4, -0.4, -0.4], [0.0; 4]] {
            let found = standings(n, 0.0, rules);
            for measure in 0..2 {
                let better = times(&found, measure, Standing::Better);
                assert!(
                    better <= MOST_WRONG,
                    "{better} of {TABLES} with {n} patients and rules {rules:?}, measure {measure}"
                );
                let worse = times(&found, measure, Standing::Worse);
                assert!(
                    worse <= MOST_WRONG,
                    "{worse} of {TABLES} with {n} patients and rules {rules:?}, measure {measure}"
                );
            }
        }
        assert_eq!(times(&standings(n, -0.1, [0.0; 4]), 0, Standing::Better), 0);
    }
}

#[test]
fn who_is_much_better_or_worse_is_called_so() {
    for measure in 0..2 {
        assert!(times(&standings(60, 0.25, [0.0; 4]), measure, Standing::Better) > 190);
        assert!(times(&standings(60, -0.25, [0.0, 0.0, -0.1, -0.1]), measure, Standing::Worse) > 190);
    }
}

/// States, actions and measurements of a simulator in which actions are repeated, depend on the state and on what is measured.
const STATES: usize = 5;
const ACTIONS: usize = 4;

/// How a simulator's people decide.
struct Habit {
    repeated: f64,
    by_state: f64,
    by_measurement: f64,
}

fn favourite(state: usize) -> usize {
    [0, 1, 1, 2, 3][state]
}

fn measured(x: f32) -> usize {
    usize::from(x > -0.5) + usize::from(x > 0.5)
}

fn stays(n: usize, habit: &Habit, random: &mut impl Rng) -> Vec<RecordedStay> {
    let stay = |number: usize| {
        let steps = 2 + random.random_range(0..10);
        // Some people are harder to foresee than others.
        let steadiness: f64 = 0.5 + 0.5 * random.random::<f64>();
        let (mut states, mut actions, mut points) = (Vec::new(), Vec::new(), Vec::new());
        let mut previous: Option<usize> = None;
        for _ in 0..steps {
            let (state, x) = (random.random_range(0..STATES), 2.0 * random.random::<f32>() - 1.0);
            let u = random.random::<f64>() / steadiness;
            let action = match previous {
                Some(previous) if u < habit.repeated => previous,
                _ if u < habit.repeated + habit.by_state => favourite(state),
                _ if u < habit.repeated + habit.by_state + habit.by_measurement => measured(x),
                _ => random.random_range(0..ACTIONS),
            };
            states.push(StateId(state as u32));
            actions.push(ActionId(action as u32));
            points.push(x);
            previous = Some(action);
        }
        states.push(StateId(STATES as u32));
        RecordedStay {
            stay: number.to_string(),
            patient: number.to_string(),
            fields: vec![0.0],
            context: ContextSpace::Any.context(vec![1.0]).unwrap(),
            trajectory: Trajectory { states, actions },
            bad_end: None,
            points,
        }
    };
    (0..n).map(stay).collect()
}

/// Agents of every quality: what they do by state, measurement and the action before.
fn agent(kind: u64, stays: &[RecordedStay]) -> Answers {
    let mut own = Answers { same: Vec::new(), log_loss: Vec::new() };
    for stay in stays {
        let mut previous = 0;
        for (t, action) in stay.trajectory.actions.iter().enumerate() {
            let (state, x) = (stay.trajectory.states[t].index(), stay.points[t]);
            let first = match kind % 6 {
                0 => previous,
                1 => favourite(state),
                2 if state == 0 => favourite(state),
                2 => previous,
                3 => measured(x),
                4 if x > 0.0 => previous,
                4 => favourite(state),
                _ if t == 0 => favourite(state),
                _ => previous,
            };
            previous = action.index();
            own.same.push(first == action.index());
            own.log_loss.push(-(if first == action.index() { 0.55_f64 } else { 0.15 }).ln());
        }
    }
    own
}

fn patient_of_steps(stays: &[RecordedStay]) -> Vec<u64> {
    let steps = |(i, stay): (usize, &RecordedStay)| std::iter::repeat_n(i as u64, stay.trajectory.actions.len());
    stays.iter().enumerate().flat_map(steps).collect()
}

#[test]
fn better_than_the_best_rule_is_true_on_a_large_test_set() {
    let one = |number: u64| {
        let mut random = stream(11, "tables of a simulator", number);
        let share = |random: &mut dyn Rng| 0.1 + 0.5 * random.random::<f64>();
        let habit = Habit {
            repeated: share(&mut random),
            by_state: share(&mut random),
            by_measurement: 0.5 * share(&mut random),
        };
        let train = TrainStays::new(stays(40, &habit, &mut random));
        let validation = ValidationStays::new(stays(20, &habit, &mut random));
        let n_test = [12, 25, 50][number as usize % 3];
        let test = stays(n_test, &habit, &mut random);
        let rules = Rules::fit(&train, &validation, STATES + 1, ACTIONS).unwrap();
        let rules = rules.with_logistic(&train, &validation, number).unwrap();
        assert!(rules.logistic().unwrap().converged);
        let compared =
            compare(&patient_of_steps(&test), &agent(number, &test), &rules.answers(&test).unwrap(), &settings())
                .unwrap();
        let found = [verdict(&compared), log_loss_verdict(&compared)].map(|own| own.unwrap().standing);
        let fresh = stays(1500, &habit, &mut random);
        let accuracy = |own: &Answers| own.same.iter().filter(|same| **same).count() as f64 / own.same.len() as f64;
        let likelihood = |own: &Answers| -own.log_loss.iter().sum::<f64>() / own.log_loss.len() as f64;
        let (own, others) = (agent(number, &fresh), rules.answers(&fresh).unwrap());
        let best = |of: &dyn Fn(&Answers) -> f64| {
            others.iter().map(|(_, answers)| of(answers)).fold(f64::NEG_INFINITY, f64::max)
        };
        let truly = [accuracy(&own) > best(&accuracy), likelihood(&own) > best(&likelihood)];
        (found, truly)
    };
    let found: Vec<([Standing; 2], [bool; 2])> = (0..TABLES).into_par_iter().map(one).collect();
    for measure in 0..2 {
        let wrong = |standing: Standing, true_of_agent: bool| {
            found.iter().filter(|(own, truly)| own[measure] == standing && truly[measure] != true_of_agent).count()
        };
        let [better, worse] = [wrong(Standing::Better, true), wrong(Standing::Worse, false)];
        assert!(
            better <= MOST_WRONG && worse <= MOST_WRONG,
            "better {better}, worse {worse} of {TABLES} wrong, measure {measure}"
        );
    }
    // Verdicts that say nothing would be right as well.
    assert!(
        found.iter().any(|(own, _)| own[0] == Standing::Better)
            && found.iter().filter(|(own, _)| own[0] == Standing::Worse).count() > 20
    );
}

#[test]
fn a_rule_says_what_the_training_stays_did() {
    let stay = |patient: &str, steps: &[(u32, u32)]| RecordedStay {
        stay: patient.into(),
        patient: patient.into(),
        fields: Vec::new(),
        context: ContextSpace::Any.context(vec![1.0]).unwrap(),
        trajectory: Trajectory {
            states: steps.iter().map(|step| StateId(step.0)).chain([StateId(2)]).collect(),
            actions: steps.iter().map(|step| ActionId(step.1)).collect(),
        },
        bad_end: None,
        points: Vec::new(),
    };
    // Overall action 0 is the most frequent, in state 1 it is 2, at the first step 1.
    let train = TrainStays::new(vec![
        stay("a", &[(0, 1), (0, 0), (0, 0), (1, 2)]),
        stay("b", &[(1, 1), (0, 0), (1, 2), (1, 2), (0, 0)]),
    ]);
    let test = [stay("c", &[(0, 1), (1, 1), (1, 2), (0, 2)])];
    let rules = Rules::fit(&train, &ValidationStays::default(), 3, 3).unwrap();
    let answers = rules.answers(&test).unwrap();
    let same = |rule: Rule| &answers.iter().find(|own| own.0 == rule).unwrap().1.same;
    // Most frequent of the test stays would be 1 or 2, right in half of the steps.
    assert_eq!(same(Rule::MostFrequent), &[false; 4]);
    assert_eq!(same(Rule::MostFrequentOfState), &[false, false, true, false]);
    assert_eq!(same(Rule::Previous), &[true, true, false, true]);
    for (rule, own) in &answers {
        assert!(own.log_loss.iter().all(|loss| loss.is_finite() && *loss > 0.0), "{rule:?}");
    }
    // Nine steps, one observation's worth of equal shares.
    let shares = &answers[0].1.log_loss;
    assert!((shares[0] + ((2.0 + 1.0 / 3.0) / 10.0_f64).ln()).abs() < 1e-12);
    assert!(Rules::fit(&TrainStays::default(), &ValidationStays::default(), 3, 3).is_err());
    assert!(
        Rules::fit(&train, &ValidationStays::default(), 1, 3).is_err()
            && rules.answers(&[stay("d", &[(7, 0)])]).is_err()
    );
}
