//! Scores of what was learned, on the test stays of its cohort.

use super::folder::CohortFolder;
use super::limits::Limits;
use crate::failure::Failure;
use crate::progress;
use clap::{Args, ValueEnum};
use coirl::agent::Agent;
use coirl::methods::Fitted;
use coirl::model::Cmdp;
use coirl::resampling::Resampling;
use coirl_cohort::off_policy::{AssessmentSettings, BehaviourSettings, Comparable};
use coirl_cohort::rules::{LogisticFit, Rules, Verdict, log_loss_verdict, verdict};
use coirl_cohort::synthetic::{CarriedBack, Synthetic};
use coirl_cohort::{AgentAgreement, Exam, ExamSettings, OffPolicy, TestStays};
use serde::Serialize;
use serde_json::Value;
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
        runs: &[(&Path, &Fitted)],
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
        runs: &[(&Path, &Fitted)],
        (test, truth): (&TestStays, Option<&Synthetic>),
        seed: u64,
        quiet: bool,
    ) -> Result<Scores, Failure> {
        let settings = self.settings(seed);
        let (train, validation) = (cohort.train(model)?, cohort.validation(model)?);
        let exam = Exam::new(model, &cohort.file.encoder, cohort.ends(), &validation, test)?;
        let bar = progress::stage("scoring", quiet);
        bar.set_length(2 * runs.len() as u64 + 2);
        let rules = Rules::fit(&train, &validation, cohort.ends().n_states(), model.n_actions())?;
        let rules = rules.with_logistic(&train, &validation, seed)?;
        let exam = exam.against(&rules)?;
        bar.inc(1);
        let mut agreements = Vec::new();
        for (_, fitted) in runs {
            agreements.push(exam.agreement(*fitted, &settings)?);
            bar.inc(1);
        }
        let limits = cohort.limits_on(model, test.stays())?.withholding(self.smallest_cell);
        let fitted = runs;
        let agents: Vec<&Agent> = runs.iter().map(|(_, fitted)| &fitted.agent).collect();
        let truths = match truth {
            Some(synthetic) => exam.true_values(&agents, synthetic, &settings)?,
            None => None,
        };
        bar.inc(runs.len() as u64);
        let truths = truths.map_or_else(|| vec![None; runs.len()], |truths| truths.into_iter().map(Some).collect());
        let scored = |(((path, _), agreement), truth): ((&(&Path, &Fitted), AgentAgreement), Option<CarriedBack>)| {
            let method = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
            Scored {
                run: path.display().to_string(),
                method: method.into_owned(),
                verdict: verdict(&agreement.comparisons),
                log_loss_verdict: log_loss_verdict(&agreement.comparisons),
                agreement,
                truth,
            }
        };
        let runs: Vec<Scored> = runs.iter().zip(agreements).zip(truths).map(scored).collect();
        let agents: Vec<(String, &Agent)> = runs.iter().map(|scored| scored.method.clone()).zip(agents).collect();
        let off_policy = if self.no_off_policy { None } else { exam.off_policy(&agents, &settings)? };
        bar.finish_and_clear();
        let limits_of_agents = {
            let named = runs.iter().zip(fitted).map(|(scored, (_, fitted))| (scored.method.as_str(), &fitted.agent));
            limits.in_words(&named.collect::<Vec<_>>())
        };
        Ok(Scores { runs, logistic: rules.logistic(), limits, limits_of_agents, off_policy, settings })
    }
}

/// Runs on one cohort with their scores.
#[derive(Serialize)]
pub(crate) struct Scores {
    pub(crate) runs: Vec<Scored>,
    /// What limits the scores, and the same in words.
    pub(crate) limits: Limits,
    #[serde(skip)]
    limits_of_agents: Vec<(&'static str, String)>,
    /// How the logistic model went that agents are compared with.
    pub(crate) logistic: Option<LogisticFit>,
    /// Nothing where no outcome is recorded, or it was not asked for.
    pub(crate) off_policy: Option<OffPolicy>,
    pub(crate) settings: ExamSettings,
}

impl Scores {
    /// The scores for programs, with more that belongs to them.
    pub(crate) fn to_json(&self, more: Value) -> Result<Value, Failure> {
        let mut line = serde_json::to_value(self).map_err(std::io::Error::from)?;
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        Ok(line)
    }

    /// What limits the scores, in words.
    pub(crate) fn limits_in_words(&self) -> Vec<(&'static str, String)> {
        self.limits_of_agents.clone()
    }
}

/// A run with its scores.
#[derive(Debug, Serialize)]
pub(crate) struct Scored {
    pub(crate) run: String,
    /// What the run is called.
    pub(crate) method: String,
    /// How it stands to the best trivial rule by the action it takes first, and by its log-loss.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) log_loss_verdict: Option<Verdict>,
    pub(crate) agreement: AgentAgreement,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<CarriedBack>,
}
