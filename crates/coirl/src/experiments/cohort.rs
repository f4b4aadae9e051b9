//! The paper's table of real patients (Section 4.4), on any cohort: COIRL with a network and with a linear mapping, cloning, and what is trivial, each
//! trained until the share of validation actions that it would take stops rising, and scored on test patients.

use crate::baselines::{Majority, NearestContext, NeuralCloning};
use crate::cohort::{Cohort, Ends, Exam, ExamSettings, ValidationStays, draw, synthetic::Synthetic};
use crate::demos::Estimator;
use crate::error::Result;
use crate::evaluate::Resampling;
use crate::learn::{
    Adaptive, Average, Batch, Geometry, Hidden, Method, MirrorDescent, Neural, Objective, Problem, Recorder, Settings,
    StepSize, Stop, Watch, Watched, fit,
};
use crate::network::Layer;
use serde::Serialize;

/// Validation patients that runs are watched on.
const WATCHED_STAYS: usize = 300;

/// A row of the table.
#[derive(Debug, Clone)]
pub struct Entrant {
    /// What it is called.
    pub name: &'static str,
    /// What the paper reports for it, in per cent, with its standard deviation.
    pub paper: Option<(f64, f64)>,
    estimator: Estimator,
    method: Method,
    steps: Option<u64>,
    /// Steps between two looks at the validation patients, and looks without anything better that end a run.
    record_every: u64,
    patience: u64,
}

/// How an entrant fared with one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fared {
    /// Whom it is about.
    pub name: &'static str,
    /// Seed of the split, the states and the method.
    pub seed: u64,
    /// Share of the test steps with the recorded action.
    pub by_step: f64,
    /// The paper's accuracy: see [`visited_state_accuracy`](crate::evaluate::matching::visited_state_accuracy).
    pub by_visited_state: f64,
    /// Mean F1 over actions.
    pub macro_f1: f64,
    /// Share of the most frequent action.
    pub majority: f64,
    /// Value above random by the clinicians' without lapses, where the table is synthetic and its simulator knows the actions.
    pub true_value: Option<f64>,
    /// Steps taken.
    pub steps: u64,
}

/// The table: the paper's settings first, then what goes beyond it, then what is trivial.
pub fn entrants() -> Vec<Entrant> {
    let batch = Batch::WithReplacement { size: 32 };
    let paper_linear = MirrorDescent {
        geometry: Geometry::Ball,
        step_size: StepSize::Schedule { initial: 0.25, decay: 0.95 },
        average: Average::Last,
        batch,
    };
    // The paper's layers are four, two and two times as wide as there are features: 32 million weights for 1,500 states. These have its shape.
    let hidden = Hidden::Layers(vec![Layer::normalised(512), Layer::leaky(256), Layer::linear(256)]);
    let scaled = Neural { hidden, ..Neural::paper_patients() };
    let plain = Estimator::Truncated { horizon: None };
    let entrant = |name, paper, method| Entrant {
        name,
        paper,
        estimator: plain.clone(),
        method,
        steps: Some(100),
        record_every: 1,
        patience: 5,
    };
    let beyond = |name, method| Entrant { record_every: 10, patience: 10, steps: None, ..entrant(name, None, method) };
    let shuffled = Batch::WithoutReplacement { size: 32 };
    let adaptive = Adaptive { objective: Objective::likelihood(), batch: shuffled };
    vec![
        entrant("COIRL, network, as in the paper", Some((83.74, 1.02)), Method::Neural(scaled)),
        entrant("COIRL, linear, as in the paper", Some((45.17, 7.14)), Method::MirrorDescent(paper_linear)),
        // The paper waits for five epochs: of 70,000 steps taken, an epoch has two thousand batches.
        Entrant {
            steps: Some(20_000),
            record_every: 2000,
            ..entrant(
                "cloning, as in the paper",
                Some((73.12, 0.82)),
                Method::NeuralCloning(NeuralCloning::paper_patients()),
            )
        },
        beyond("COIRL, network, likelihood", Method::Neural(Neural::default())),
        Entrant { steps: Some(1000), ..beyond("COIRL, linear, likelihood", Method::Adaptive(adaptive)) },
        Entrant {
            record_every: 1000,
            patience: 5,
            steps: Some(20_000),
            ..beyond("cloning, Adam, known actions", Method::NeuralCloning(NeuralCloning::default()))
        },
        beyond("nearest context", Method::NearestContext(NearestContext {})),
        beyond("most frequent action of the state", Method::Majority(Majority {})),
    ]
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
    let problem = Problem::new(model, &train, &entrant.estimator)?;
    let validation = Problem::validation(model, &watched.demonstrations(model)?, &entrant.estimator)?;
    let stop = Stop {
        max_steps: entrant.steps,
        patience: Some(entrant.patience),
        watched: Watched::Accuracy,
        ..Stop::default()
    };
    let settings = Settings {
        seed: cohort.seed,
        stop,
        record_every: entrant.record_every,
        record_loss: false,
        ..Settings::new(entrant.method.clone())
    };
    let fitted = fit(&problem, &settings, Watch { validation: Some(&validation), examination: None }, recorder)?;
    let ends = Ends::of_spec(cohort.encoder.centroids.n_clusters(), &cohort.spec);
    let exam = Exam::new(model, &cohort.encoder, ends, &cohort.validation, &cohort.test)?;
    // Spread is over seeds here; intervals of single runs are not asked for.
    let resampling = Resampling { resamples: 2, seed: cohort.seed, ..Resampling::default() };
    let settings = ExamSettings { resampling, ..ExamSettings::default() };
    let agreement = exam.agreement(&fitted.agent, &settings)?;
    let carried = match truth {
        Some(synthetic) => exam.true_values(&[&fitted.agent], synthetic, &settings)?,
        None => None,
    };
    let overall = &agreement.matching.overall;
    Ok(Fared {
        name: entrant.name,
        seed: cohort.seed,
        by_step: overall.top_one.value,
        by_visited_state: agreement.published_accuracy.value,
        macro_f1: overall.macro_f1.value,
        majority: overall.majority.value,
        true_value: carried.and_then(|carried| carried.first().map(|carried| carried.relative_value())),
        steps: fitted.steps,
    })
}
