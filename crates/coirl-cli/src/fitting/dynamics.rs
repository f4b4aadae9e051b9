//! Dynamics that are learned before, or together with, the mapping.

use super::report::percent;
use crate::failure::Failure;
use crate::numbers::{count, short};
use clap::{Args, ValueEnum};
use coirl::demos::{Estimator, Train};
use coirl::dynamics::{Centres, ExpectationMaximisation, MaximisedStatus, Prior, PriorMean, Structure};
use coirl::learn::Problem;
use coirl::methods::{DynamicsLearning, Fitted, OnlineDynamics, Round, Settings, THIN_SUPPORT};
use coirl::model::{Cmdp, Dynamics};
use coirl::score::Examination;
use serde::Serialize;
use std::sync::Arc;

/// The name of the model with learned dynamics in the output folder.
pub(crate) const LEARNED_MODEL: &str = "dynamics.safetensors";
/// Observations that the prior counts for, by default.
const PRIOR: f64 = 1.0;
/// Clusters of contexts, by default.
const CLUSTERS: usize = 3;
/// A larger share of thin visits is worth a note.
const WORTH_A_NOTE: f64 = 0.1;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Learning the dynamics [default: those of --model are known]")]
pub(crate) struct DynamicsArgs {
    /// Learn the dynamics from the transitions of the trajectories, instead of those of --model: one kernel, one per
    /// cluster of contexts, or one per number of a context
    #[arg(long, value_name = "HOW", value_enum, requires = "trajectories")]
    learn_dynamics: Option<StructureArg>,
    /// Observations that the prior of every pair counts for [default: 1]
    #[arg(long, value_name = "A", requires = "learn_dynamics", allow_negative_numbers = true)]
    prior: Option<f64>,
    /// Where a pair is thought to lead before it is seen: to what was seen of its state, nowhere, or as in --model
    #[arg(long, value_name = "NAME", value_enum, default_value_t = MeanArg::Seen, requires = "learn_dynamics")]
    prior_mean: MeanArg,
    /// Clusters of contexts [default: 3]
    #[arg(long, value_name = "K", requires = "learn_dynamics")]
    clusters: Option<usize>,
    /// Learn dynamics and mapping in turns, with one more of N equal parts of the demonstrations in every round [default: 1]
    #[arg(long, value_name = "N", requires = "learn_dynamics")]
    rounds: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum StructureArg {
    Pooled,
    Clusters,
    Mixture,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MeanArg {
    Seen,
    Stay,
    Model,
}

/// The rounds before the last, and everything that the last one learns from.
pub(crate) struct Learning<'a> {
    structure: StructureArg,
    online: OnlineDynamics<'a>,
    rounds: Vec<Round>,
}

/// What is known of the dynamics once the mapping is learned.
#[derive(Serialize)]
pub(crate) struct LearnedDynamics {
    structure: StructureArg,
    pairs: usize,
    thinnest_pair: Option<ThinPair>,
    rounds: Vec<Round>,
    #[serde(skip)]
    last: Round,
    #[serde(skip)]
    notes: Vec<String>,
}

/// A pair and how often it was seen.
#[derive(Serialize)]
struct ThinPair {
    state: u32,
    action: u32,
    observations: f64,
}

impl DynamicsArgs {
    /// Learns in all rounds but the last one's mapping, which is the caller's. Nothing where the dynamics are known.
    pub(crate) fn learn<'a>(
        &self,
        given: &'a Cmdp,
        train: &Train,
        estimator: Option<&Estimator>,
        seed: u64,
        examination: Option<&Examination<'_>>,
        settings: impl Fn(&Problem<'_>) -> Result<Settings, Failure>,
    ) -> Result<Option<Learning<'a>>, Failure> {
        let Some(structure) = self.learn_dynamics else { return Ok(None) };
        let (n, n_rounds) = (train.demonstrations().len(), self.rounds.unwrap_or(1));
        if !(1..=n).contains(&n_rounds) {
            let expected = format!("expected 1 to {n}, a demonstration or more in every round");
            return Err(Failure::refused(format!("--rounds {n_rounds}: {expected}")));
        }
        let how = DynamicsLearning {
            structure: self.structure(structure, seed)?,
            prior: self.prior(given)?,
            start: None,
            estimator: estimator.cloned(),
        };
        let mut learning = Learning { structure, online: OnlineDynamics::new(given, how), rounds: Vec::new() };
        for round in 1..=n_rounds {
            learning.online.observe(&train.demonstrations()[(round - 1) * n / n_rounds..round * n / n_rounds], None)?;
            if round < n_rounds {
                let mut settings = settings(&learning.online.problem()?)?;
                // Nothing is kept to stop by before the last round.
                settings.stop.patience = None;
                learning.rounds.push(learning.online.learn(&settings, examination, &mut ())?.1);
            }
        }
        Ok(Some(learning))
    }

    fn structure(&self, structure: StructureArg, seed: u64) -> Result<Structure, Failure> {
        if let (Some(k), StructureArg::Pooled | StructureArg::Mixture) = (self.clusters, structure) {
            return Err(Failure::refused(format!("--clusters {k} goes with --learn-dynamics clusters")));
        }
        Ok(match structure {
            StructureArg::Pooled => Structure::Pooled,
            StructureArg::Clusters => Structure::Clusters {
                centres: Centres::Found { number: self.clusters.unwrap_or(CLUSTERS), seed },
                shrinkage: self.prior.unwrap_or(PRIOR),
            },
            StructureArg::Mixture => Structure::Mixture(ExpectationMaximisation::default()),
        })
    }

    fn prior(&self, given: &Cmdp) -> Result<Prior, Failure> {
        let mean = match (self.prior_mean, given.dynamics()) {
            (MeanArg::Seen, _) => PriorMean::SeenFromState,
            (MeanArg::Stay, _) => PriorMean::Stay,
            (MeanArg::Model, Dynamics::Shared(kernel)) => PriorMean::Kernel(Arc::new(kernel.clone())),
            (MeanArg::Model, Dynamics::Mixture(_) | Dynamics::Clusters(_)) => {
                let reason = "--prior-mean model needs one kernel, but the dynamics of --model depend on the context";
                return Err(Failure::refused(format!("{reason}; expected seen or stay")));
            }
        };
        Ok(Prior::new(self.prior.unwrap_or(PRIOR), mean))
    }
}

impl Learning<'_> {
    /// The model with learned dynamics.
    pub(crate) fn model(&self) -> Result<&Cmdp, Failure> {
        Ok(self.online.model()?)
    }

    /// The settings of the last round: it goes on from the mapping of the one before.
    pub(crate) fn settings(&self, settings: &Settings) -> Result<Settings, Failure> {
        Ok(self.online.settings(settings)?)
    }

    /// What is known once the last mapping is learned.
    pub(crate) fn report(
        &self,
        fitted: &Fitted,
        examination: Option<&Examination<'_>>,
    ) -> Result<LearnedDynamics, Failure> {
        let last = self.online.record(fitted, examination)?;
        let learned = self.online.learned()?;
        let (support, pairs) = (&learned.support, learned.support.pairs());
        let thin_pair = |pair: usize| ThinPair {
            state: pairs.state(pair).0,
            action: pairs.action(pair).0,
            observations: support.of(pair),
        };
        let mut notes = Vec::new();
        if last.unsupported_share > WORTH_A_NOTE {
            notes.push(format!(
                "{} of what the agent does is on pairs seen fewer than {THIN_SUPPORT} times, where the prior decides: \
                 experts do not show what they avoid. Trajectories that try other actions, or --prior-mean model, help",
                percent(last.unsupported_share)
            ));
        }
        if let Some((MaximisedStatus::IterationLimit { pairs }, gap)) =
            learned.maximised.as_ref().map(|maximised| (maximised.status, maximised.gap))
        {
            notes.push(format!(
                "{pairs} rows of the mixture met the limit of iterations; the log-likelihood is at most {} too low",
                short(gap)
            ));
        }
        Ok(LearnedDynamics {
            structure: self.structure,
            pairs: pairs.len(),
            thinnest_pair: support.thinnest_seen().map(thin_pair),
            rounds: self.rounds.iter().chain([&last]).cloned().collect(),
            last,
            notes,
        })
    }
}

impl LearnedDynamics {
    /// What the reader should know before using the result.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Lines of the table: what, number, remark.
    pub(super) fn rows(&self) -> Vec<(&'static str, String, String)> {
        let how = match self.structure {
            StructureArg::Pooled => "to one kernel",
            StructureArg::Clusters => "to a kernel per cluster of contexts",
            StructureArg::Mixture => "to a mixture of kernels",
        };
        let mut rows = vec![
            ("transitions", count(self.last.transitions as usize), how.to_owned()),
            ("pairs seen", count(self.last.pairs_seen), format!("of {}", count(self.pairs))),
        ];
        if let Some(pair) = &self.thinnest_pair {
            let which = format!("state {}, action {}, of those seen", pair.state, pair.action);
            rows.push(("observations at least", short(pair.observations), which));
        }
        let thin = format!("of the agent, on pairs seen < {THIN_SUPPORT} times");
        rows.push(("thin visits", percent(self.last.unsupported_share), thin));
        if let Some(acting) = self.last.acting {
            let remark = "planned as learned, acting in --model".to_owned();
            rows.push(("value with learned dynamics", percent(acting.value_ratio), remark));
        }
        rows
    }
}
