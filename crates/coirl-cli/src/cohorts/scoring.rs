//! Scores of what was learned, on the test stays of its cohort.

use super::folder::CohortFolder;
use crate::failure::Failure;
use crate::progress;
use clap::{Args, ValueEnum};
use coirl::agent::Agent;
use coirl::model::Cmdp;
use coirl::resampling::Resampling;
use coirl_cohort::off_policy::{AssessmentSettings, BehaviourSettings, Comparable};
use coirl_cohort::synthetic::{CarriedBack, Synthetic};
use coirl_cohort::{AgentAgreement, Exam, ExamSettings, OffPolicy, TestStays};
use serde::Serialize;
use std::path::Path;

/// Rows of other patients that a behaviour is estimated from.
const NEIGHBOURS: usize = 100;

/// How to score.
#[derive(Debug, Args)]
pub(crate) struct ExamArgs {
    /// Times that patients are drawn again for intervals
    #[arg(long, value_name = "N", default_value_t = 500)]
    resamples: usize,
    /// The same for what policies would have reached, which is fitted again each time
    #[arg(long, value_name = "N", default_value_t = 100)]
    off_policy_resamples: usize,
    /// How the clinicians' behaviour is estimated: by counts in each state, or from the nearest rows
    #[arg(long, value_name = "NAME", value_enum, default_value_t = BehaviourArg::Counts)]
    behaviour: BehaviourArg,
    /// Effective stays below which importance weights are refused
    #[arg(long, value_name = "N", default_value_t = AssessmentSettings::default().least_effective_sample_size, allow_negative_numbers = true)]
    least_effective: f64,
    /// Show fitted Q evaluation even where importance weights are refused; it was wrong in every such table whose truth is known
    #[arg(long)]
    fitted_q_alone: bool,
    /// Share of the clinicians' behaviour that is mixed into the policy
    #[arg(long, value_name = "SHARE", default_value_t = ExamSettings::default().softness, allow_negative_numbers = true)]
    softness: f64,
    /// Patients on whom the true value is computed, for synthetic tables
    #[arg(long, value_name = "N", default_value_t = ExamSettings::default().true_patients)]
    true_patients: usize,
    /// Patients below which nothing is told of a subgroup; 0 to tell of everybody
    #[arg(long, value_name = "N", default_value_t = ExamSettings::default().smallest_cell)]
    pub(crate) smallest_cell: usize,
    /// Leave out off-policy evaluation
    #[arg(long)]
    no_off_policy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BehaviourArg {
    Counts,
    Neighbours,
}

impl ExamArgs {
    fn settings(&self, seed: u64) -> ExamSettings {
        let defaults = ExamSettings::default();
        ExamSettings {
            behaviour: BehaviourSettings {
                comparable: match self.behaviour {
                    BehaviourArg::Counts => Comparable::State,
                    BehaviourArg::Neighbours => Comparable::Neighbours { k: NEIGHBOURS },
                },
                ..defaults.behaviour
            },
            assessment: AssessmentSettings {
                least_effective_sample_size: self.least_effective,
                fitted_q_alone: self.fitted_q_alone,
                resampling: Resampling { resamples: self.off_policy_resamples, seed, ..Resampling::default() },
                ..defaults.assessment
            },
            softness: self.softness,
            true_patients: self.true_patients,
            smallest_cell: self.smallest_cell,
            resampling: Resampling { resamples: self.resamples, seed, ..Resampling::default() },
        }
    }

    /// Scores runs on the test stays of the cohort that they learned from; each is given with its folder.
    pub(crate) fn score(
        &self,
        cohort: &CohortFolder,
        runs: &[(&Path, &Agent)],
        seed: u64,
        quiet: bool,
    ) -> Result<Scores, Failure> {
        let model = cohort.model()?;
        let test = cohort.test(&model)?;
        self.score_on(cohort, &model, runs, (&test, cohort.file.truth.as_ref()), seed, quiet)
    }

    /// Scores runs on any stays that nothing was learned from, in the numbers of the cohort, beside what their table was made with.
    pub(crate) fn score_on(
        &self,
        cohort: &CohortFolder,
        model: &Cmdp,
        runs: &[(&Path, &Agent)],
        (test, truth): (&TestStays, Option<&Synthetic>),
        seed: u64,
        quiet: bool,
    ) -> Result<Scores, Failure> {
        let settings = self.settings(seed);
        let validation = cohort.validation(model)?;
        let exam = Exam::new(model, &cohort.file.encoder, cohort.ends(), &validation, test)?;
        let bar = progress::stage("scoring", quiet);
        bar.set_length(2 * runs.len() as u64 + 1);
        let mut agreements = Vec::new();
        for (_, agent) in runs {
            agreements.push(exam.agreement(agent, &settings)?);
            bar.inc(1);
        }
        let agents: Vec<&Agent> = runs.iter().map(|(_, agent)| *agent).collect();
        let truths = match truth {
            Some(synthetic) => exam.true_values(&agents, synthetic, &settings)?,
            None => None,
        };
        bar.inc(runs.len() as u64);
        let truths = truths.map_or_else(|| vec![None; runs.len()], |truths| truths.into_iter().map(Some).collect());
        let scored = |(((path, _), agreement), truth): ((&(&Path, &Agent), AgentAgreement), Option<CarriedBack>)| {
            let method = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
            let people = cohort.file.people();
            Scored { run: path.display().to_string(), method: method.into_owned(), people, agreement, truth }
        };
        let runs: Vec<Scored> = runs.iter().zip(agreements).zip(truths).map(scored).collect();
        let agents: Vec<(String, &Agent)> = runs.iter().map(|scored| scored.method.clone()).zip(agents).collect();
        let off_policy = if self.no_off_policy { None } else { exam.off_policy(&agents, &settings)? };
        bar.finish_and_clear();
        Ok(Scores { runs, off_policy, settings })
    }
}

/// Runs on one cohort with their scores.
pub(crate) struct Scores {
    pub(crate) runs: Vec<Scored>,
    /// Nothing where no outcome is recorded, or it was not asked for.
    pub(crate) off_policy: Option<OffPolicy>,
    pub(crate) settings: ExamSettings,
}

/// A run with its scores.
#[derive(Debug, Serialize)]
pub(crate) struct Scored {
    pub(crate) run: String,
    /// What the run is called.
    pub(crate) method: String,
    /// Who was resampled: patients, or stays where nobody knows whose they are.
    pub(crate) people: &'static str,
    pub(crate) agreement: AgentAgreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<CarriedBack>,
}
