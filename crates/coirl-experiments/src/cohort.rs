//! The paper's table of real patients (Section 4.4), on any cohort: COIRL with a network and with a linear mapping, cloning, and what is trivial, each
//! trained until the share of validation actions that it would take stops rising, and scored on test patients.

use super::experiment::Entrant;
use coirl::Result;
use coirl::learn::{Problem, Recorder, Stop, Watch, Watched};
use coirl::methods::{Settings, fit};
use coirl::resampling::Resampling;
use coirl_cohort::rules::{Rule, Rules};
use coirl_cohort::{Cohort, Ends, Exam, ExamSettings, ValidationStays, draw, synthetic::Synthetic};
use serde::Serialize;

/// Validation patients that runs are watched on.
const WATCHED_STAYS: usize = 300;

/// How an entrant fared with one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fared {
    /// Whom it is about.
    pub name: String,
    /// Seed of the split, the states and the method.
    pub seed: u64,
    /// Share of the test steps with the recorded action.
    pub by_step: f64,
    /// The paper's accuracy: see [`visited_state_accuracy`](coirl_cohort::agreement::visited_state_accuracy).
    pub by_visited_state: f64,
    /// Mean F1 over actions.
    pub macro_f1: f64,
    /// Share of the test steps with the most frequent training action.
    pub majority: f64,
    /// Value above random by the clinicians' without lapses, where the table is synthetic and its simulator knows the actions.
    pub true_value: Option<f64>,
    /// Steps taken.
    pub steps: u64,
}

/// Trains an entrant on a cohort and scores it.
pub fn enter(
    entrant: &Entrant,
    cohort: &Cohort,
    truth: Option<&Synthetic>,
    recorder: &mut dyn Recorder,
) -> Result<Fared> {
    let model = &cohort.model;
    let drawn = draw(cohort.validation.stays().len(), WATCHED_STAYS, cohort.seed);
    let watched = ValidationStays::new(drawn.into_iter().map(|i| cohort.validation.stays()[i].clone()).collect());
    let train = cohort.train.demonstrations(model)?;
    let problem = Problem::new(model, &train, entrant.estimator().as_ref())?;
    let validation = Problem::validation(model, &watched.demonstrations(model)?, entrant.estimator().as_ref())?;
    let own = entrant.settings(problem.len(), cohort.seed);
    let (record_every, patience) = entrant.patience.unzip();
    let stop = Stop { patience, watched: Some(Watched::Accuracy), ..own.stop };
    let settings = Settings { stop, record_every: Some(record_every.unwrap_or_default()), ..own };
    let fitted = fit(&problem, &settings, Watch { validation: Some(&validation), examination: None }, recorder)?;
    let ends = Ends::of_spec(cohort.encoder.centroids.n_clusters(), &cohort.spec);
    let rules = Rules::fit(&cohort.train, &cohort.validation, ends.n_states(), model.n_actions())?;
    let exam = Exam::new(model, &cohort.encoder, ends, &cohort.validation, &cohort.test)?.against(&rules)?;
    // Spread is over seeds here; intervals of single runs are not asked for.
    let resampling = Resampling { resamples: 2, seed: cohort.seed, ..Resampling::default() };
    let settings = ExamSettings { resampling, ..ExamSettings::default() };
    let agreement = exam.agreement(&fitted.agent, &settings)?;
    let carried = match truth {
        Some(synthetic) => exam.true_values(&[&fitted.agent], synthetic, &settings)?,
        None => None,
    };
    let overall = &agreement.matching.overall;
    let majority = agreement.comparisons.iter().find(|own| own.rule == Rule::MostFrequent);
    Ok(Fared {
        name: entrant.name.clone(),
        seed: cohort.seed,
        by_step: overall.top_one.value,
        by_visited_state: agreement.published_accuracy.value,
        macro_f1: overall.macro_f1.value,
        majority: majority.map_or(f64::NAN, |own| own.pairing.same_action.value),
        true_value: carried.and_then(|carried| carried.first().map(|carried| carried.relative_value())),
        steps: fitted.steps,
    })
}
