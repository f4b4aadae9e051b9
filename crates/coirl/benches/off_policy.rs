//! What off-policy evaluation says where the truth is known: the published sepsis process, recorded under its clinicians.
//!
//! ```text
//! cargo bench -p coirl --bench off_policy [-- estimates | coverage | neighbours] [--stays 10000] [--repetitions 50] [--resamples 100]
//! ```
//!
//! `estimates` scores several policies on one record, nothing refused; `coverage` counts how often the 95 % intervals hold the
//! truth over repeated records; `neighbours` is the time of the behaviour policy by nearest neighbours.
#![allow(clippy::print_stdout)] // tables are the result

#[path = "../tests/clinicians/mod.rs"]
mod clinicians;

use clinicians::Clinicians;
use coirl::plan::Policy;
use coirl::resampling::Resampling;
use coirl_cohort::off_policy::{
    Assessment, AssessmentSettings, Behaviour, BehaviourSettings, Comparable, FittedQSettings, Outcome, Record,
    StepPolicy, assess, recorded_outcome,
};
use std::time::Instant;

struct Wanted {
    words: Vec<String>,
}

impl Wanted {
    fn part(&self, name: &str) -> bool {
        let parts = ["estimates", "coverage", "neighbours"];
        let named: Vec<&String> = self.words.iter().filter(|word| parts.contains(&word.as_str())).collect();
        named.is_empty() || named.iter().any(|word| *word == name)
    }

    fn number(&self, name: &str, default: usize) -> usize {
        let at = self.words.iter().position(|word| word == name);
        at.and_then(|at| self.words.get(at + 1)?.parse().ok()).unwrap_or(default)
    }
}

fn main() -> coirl::Result<()> {
    let wanted = Wanted { words: std::env::args().skip(1).collect() };
    let (stays, resamples) = (wanted.number("--stays", 10_000), wanted.number("--resamples", 100));
    let ward = Clinicians::new()?;
    if wanted.part("estimates") {
        estimates(&ward, stays, resamples)?;
    }
    if wanted.part("coverage") {
        coverage(&ward, stays, resamples, wanted.number("--repetitions", 50))?;
    }
    if wanted.part("neighbours") {
        neighbours(&ward, stays)?;
    }
    Ok(())
}

/// Settings that refuse nothing, to see what would have been said.
fn unguarded(resamples: usize, seed: u64) -> AssessmentSettings {
    AssessmentSettings {
        least_effective_sample_size: 0.0,
        most_weight_bias: f64::MAX,
        most_calibration_error: 2.0,
        most_unseen: 1.0,
        resampling: Resampling { resamples, seed, ..Resampling::default() },
        ..AssessmentSettings::default()
    }
}

fn outcomes(assessment: &Assessment) -> [(&'static str, &Outcome); 6] {
    [
        ("IS", &assessment.importance_sampling),
        ("WIS", &assessment.weighted),
        ("per-decision WIS", &assessment.per_decision),
        ("FQE", &assessment.fitted_q),
        ("DR", &assessment.doubly_robust),
        ("WDR", &assessment.weighted_doubly_robust),
    ]
}

fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused { .. } => "refused".into(),
        Outcome::Estimated { value, interval: None } => format!("{value:.3}"),
        Outcome::Estimated { value, interval: Some(ends) } => {
            format!("{value:.3} ({:.3}–{:.3})", ends.lower, ends.upper)
        }
    }
}

fn estimates(ward: &Clinicians, stays: usize, resamples: usize) -> coirl::Result<()> {
    let record = ward.record(stays, 1)?;
    let known = ward.known_behaviour(&record)?;
    let counted = Behaviour::estimate(&record, &BehaviourSettings::default())?;
    for (name, behaviour) in [("known", &known), ("counted", &counted)] {
        let calibration = behaviour.calibration();
        println!(
            "behaviour {name}: strength {:?}, calibration error {:.4} (noise {:.4}), log-loss {:.4} (overall shares {:.4})",
            behaviour.strength(),
            calibration.error,
            calibration.noise,
            calibration.log_loss,
            calibration.overall_log_loss
        );
    }
    let recorded = recorded_outcome(&record, &Resampling { resamples, ..Resampling::default() })?;
    println!(
        "{stays} stays, {} steps, recorded outcome {:.4} {:?}\n",
        record.n_steps(),
        recorded.value,
        recorded.interval
    );
    println!(
        "| policy | behaviour | truth | ESS | mean weight | never seen | IS | WIS | per-decision WIS | FQE | DR | WDR | by default | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let optimal = ward.step_policy(&record, &ward.optimal)?;
    let half = optimal.softened(0.5, known.policy())?;
    let mixed = mixture(ward, 0.5)?;
    let uniform = Policy::uniform(ward.model.pairs());
    for (name, policy, truth, behaviour, behaviour_name) in [
        ("optimal", &optimal, ward.truth(&ward.optimal)?, &known, "known"),
        ("optimal", &optimal, ward.truth(&ward.optimal)?, &counted, "counted"),
        ("half optimal, half clinicians", &half, ward.truth(&mixed)?, &known, "known"),
        ("half optimal, half clinicians", &half, ward.truth(&mixed)?, &counted, "counted"),
        ("clinicians", known.policy(), ward.truth(&ward.policy)?, &counted, "counted"),
        ("random", &StepPolicy::uniform(&record), ward.truth(&uniform)?, &counted, "counted"),
        ("random of seen actions", &StepPolicy::uniform_over_seen(&record), f64::NAN, &counted, "counted"),
        ("no treatment", &StepPolicy::always(&record, 0)?, ward.truth(&untreated(ward)?)?, &counted, "counted"),
    ] {
        let begun = Instant::now();
        let assessment = assess(&record, behaviour, policy, &unguarded(resamples, 0))?;
        let seconds = begun.elapsed().as_secs_f64();
        let guarded = AssessmentSettings { resampling: unguarded(2, 0).resampling, ..AssessmentSettings::default() };
        let guarded = assess(&record, behaviour, policy, &guarded)?;
        let given: Vec<&str> =
            outcomes(&guarded).iter().filter(|(_, outcome)| outcome.value().is_some()).map(|(name, _)| *name).collect();
        let given = if given.is_empty() { "all refused".into() } else { given.join(", ") };
        let cells: Vec<String> = outcomes(&assessment).iter().map(|(_, outcome)| text(outcome)).collect();
        println!(
            "| {name} | {behaviour_name} | {truth:.3} | {:.0} | {:.2} | {:.1} % | {} | {given} | {seconds:.1} |",
            assessment.effective_sample_size,
            assessment.mean_weight,
            100.0 * assessment.unseen,
            cells.join(" | ")
        );
    }
    println!();
    Ok(())
}

/// At every step the optimal action with this probability, otherwise what clinicians do.
fn mixture(ward: &Clinicians, share: f64) -> coirl::Result<Policy> {
    let (Policy::Stochastic(clinicians), Some(optimal)) = (&ward.policy, ward.optimal.actions()) else {
        return Ok(ward.policy.clone());
    };
    let pairs = ward.model.pairs();
    let is_optimal = |pair: usize| f64::from(u8::from(optimal[pairs.state(pair).index()] == pairs.action(pair)));
    let mixed = (0..pairs.len()).map(|pair| share * is_optimal(pair) + (1.0 - share) * clinicians[pair]).collect();
    Policy::stochastic(pairs, mixed)
}

fn untreated(ward: &Clinicians) -> coirl::Result<Policy> {
    Policy::stationary(ward.model.pairs(), vec![coirl::model::ActionId(0); ward.model.n_states()])
}

fn coverage(ward: &Clinicians, stays: usize, resamples: usize, repetitions: usize) -> coirl::Result<()> {
    println!("Coverage of 95 % intervals, {repetitions} records of {stays} stays, {resamples} resamples\n");
    println!(
        "| policy | behaviour | truth | mean ESS | estimator | mean | standard deviation | mean width | coverage |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mixed = mixture(ward, 0.5)?;
    for estimated in [false, true] {
        for (name, policy) in [("optimal", &ward.optimal), ("half optimal, half clinicians", &mixed)] {
            let truth = ward.truth(policy)?;
            let mut assessments = Vec::with_capacity(repetitions);
            for repetition in 0..repetitions as u64 {
                let record = ward.record(stays, 100 + repetition)?;
                let behaviour = if estimated {
                    Behaviour::estimate(&record, &BehaviourSettings::default())?
                } else {
                    ward.known_behaviour(&record)?
                };
                let scored = ward.step_policy(&record, policy)?;
                assessments.push(assess(&record, &behaviour, &scored, &unguarded(resamples, repetition))?);
            }
            let behaviour = if estimated { "counted" } else { "known" };
            let effective = mean(assessments.iter().map(|assessment| assessment.effective_sample_size));
            for i in 0..6 {
                let of = |assessment: &Assessment| outcomes(assessment)[i].1.clone();
                summarise(&format!("{name} | {behaviour} | {truth:.3} | {effective:.0}"), truth, &assessments, of, i);
            }
        }
    }
    println!();
    let frozen = FittedQSettings { refit: false, ..FittedQSettings::default() };
    let settings = AssessmentSettings { fitted_q: frozen, ..unguarded(resamples, 0) };
    let record = ward.record(stays, 100)?;
    let scored = ward.step_policy(&record, &ward.optimal)?;
    let assessment = assess(&record, &ward.known_behaviour(&record)?, &scored, &settings)?;
    println!("FQE of the optimal policy without refitting, first record: {}\n", text(&assessment.fitted_q));
    Ok(())
}

fn summarise(row: &str, truth: f64, all: &[Assessment], of: impl Fn(&Assessment) -> Outcome, i: usize) {
    let outcomes_of: Vec<Outcome> = all.iter().map(of).collect();
    let values: Vec<f64> = outcomes_of.iter().filter_map(Outcome::value).collect();
    let centre = mean(values.iter().copied());
    let deviation = mean(values.iter().map(|x| (x - centre).powi(2))).sqrt();
    let width = mean(outcomes_of.iter().filter_map(|outcome| Some(outcome.interval()?.width())));
    let held = outcomes_of.iter().filter(|outcome| outcome.interval().is_some_and(|ends| ends.contains(truth))).count();
    let name = outcomes(&all[0])[i].0;
    println!("| {row} | {name} | {centre:.3} | {deviation:.3} | {width:.3} | {held} of {} |", all.len());
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = numbers.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
    sum / n
}

/// Covariates that are sums of the state's own digits and the step, so that neighbours are there and not all alike.
fn neighbours(ward: &Clinicians, stays: usize) -> coirl::Result<()> {
    let record: Record = ward.record(stays, 1)?;
    let n = record.n_steps();
    let covariate = |step: usize, i: usize| {
        let state = f64::from(record.states()[step]);
        ((state * (i + 1) as f64).sin() + 0.3 * ((step * (i + 3)) as f64).cos()) as f32
    };
    let rows = (0..n).flat_map(|step| (0..10).map(move |i| (step, i))).map(|(step, i)| covariate(step, i)).collect();
    let record = record.with_covariates(10, rows)?;
    let begun = Instant::now();
    let settings = BehaviourSettings { comparable: Comparable::Neighbours { k: 100 }, ..BehaviourSettings::default() };
    let behaviour = Behaviour::estimate(&record, &settings)?;
    println!(
        "100 nearest of {n} steps by 10 covariates: {:.1} s, calibration error {:.4}, log-loss {:.4} (overall shares {:.4})",
        begun.elapsed().as_secs_f64(),
        behaviour.calibration().error,
        behaviour.calibration().log_loss,
        behaviour.calibration().overall_log_loss
    );
    Ok(())
}
