//! How well an agent's actions match the recorded ones, over all patients and by subgroup.
//!
//! At every step the agent's actions are ranked by probability, then by score where scores are given, then by number: the first
//! is its prediction, â. With a the recorded action, over the steps of the patients at hand:
//!
//! ```text
//! top one         share of steps with â = a;  by patient: mean over patients of each one's share
//! top three       share of steps with a among the first three
//! within one bin  share of steps on which â and a are at most one level apart in every dose
//! macro-F1        mean over actions of 2 |â = a = i| / (|a = i| + |â = i|), over those that occur in record or prediction
//! log-loss        mean of −ln max(π(a), floor)
//! ```
//!
//! Agreement says whether an agent acts as clinicians did, not whether that is good. Intervals are over resampled patients
//! ([`Resampling`]); in a subgroup its own patients are resampled. Cost: steps × actions, and patients × actions they met per resample.

mod decisions;
mod dose_levels;
mod events;
mod paired;
mod student;
mod tally;
mod visited_states;

pub use decisions::{Decisions, Grouping};
pub use events::{AtRisk, Foreseen, HazardBin, foreseen};
pub use paired::{Answers, Difference, Pairing, Standing, pair};
pub use visited_states::visited_state_accuracy;

use coirl::resampling::{Estimate, Resampling};
use coirl::{Error, Result};
use std::collections::BTreeMap;
use tally::Tally;

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatchingSettings {
    /// Least probability that the log-loss believes, in (0, 1). An agent that excludes what was done loses −ln floor for it, so that the
    /// log-loss of deterministic agents is mostly this number.
    pub floor: f64,
    /// How patients are resampled.
    pub resampling: Resampling,
}

impl Default for MatchingSettings {
    fn default() -> Self {
        Self { floor: 1e-6, resampling: Resampling::default() }
    }
}

/// How well actions match over a set of patients.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Agreement {
    /// Patients.
    pub patients: usize,
    /// Their steps.
    pub steps: usize,
    /// Share of steps on which the agent's first action is the recorded one.
    pub top_one: Estimate,
    /// Mean over patients of each patient's own share ("accuracy by trajectory").
    pub top_one_by_patient: Estimate,
    /// Share of steps on which the recorded action is among the agent's first three. Without scores an action of probability zero is
    /// not ranked: for a deterministic agent this is then `top_one`.
    pub top_three: Estimate,
    /// Share of steps at most one level off in every dose; nothing where actions are not levels of doses.
    pub within_one: Option<Estimate>,
    /// Mean of F1 over the actions that occur in the record or the prediction.
    pub macro_f1: Estimate,
    /// Mean of −ln π(recorded action), natural logarithm, floored as the settings say.
    pub log_loss: Estimate,
    /// Share of steps on which the floor was used.
    pub floored: f64,
}

/// Agreement in one subgroup.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct GroupAgreement {
    /// What its patients have in common.
    pub label: String,
    /// How well actions match there; nothing where that would tell of too few patients ([`Matching::withholding`]).
    pub agreement: Option<Agreement>,
}

/// Agreement by one grouping.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct GroupingAgreement {
    /// What patients are grouped by.
    pub name: String,
    /// Patients of the record without a label: they are in none of the groups. Nothing where they are too few to tell.
    pub unlabelled: Option<usize>,
    /// One per label, in the order of the labels.
    pub groups: Vec<GroupAgreement>,
}

/// Agreement over all patients and by every grouping.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Matching {
    /// What was asked for.
    pub settings: MatchingSettings,
    /// Over all patients.
    pub overall: Agreement,
    /// By subgroup.
    pub groupings: Vec<GroupingAgreement>,
}

impl Matching {
    /// The same without groups of fewer than `smallest` patients. Where a difference from the total would give such a group away, the
    /// next larger groups of its grouping go as well, until at least two groups and `smallest` patients are withheld.
    pub fn withholding(mut self, smallest: usize) -> Self {
        for grouping in &mut self.groupings {
            grouping.withhold(smallest);
        }
        self
    }
}

impl GroupingAgreement {
    fn withhold(&mut self, smallest: usize) {
        let of_groups = self.groups.iter().map(|group| group.agreement.as_ref().map_or(0, |own| own.patients));
        // Those without a label are a group like any other, the last.
        let sizes: Vec<usize> = of_groups.chain([self.unlabelled.unwrap_or_default()]).collect();
        for i in too_few(&sizes, smallest) {
            match self.groups.get_mut(i) {
                Some(group) => group.agreement = None,
                None => self.unlabelled = None,
            }
        }
    }
}

/// Which parts of a known total to withhold, so that nothing is told of a part smaller than `smallest`. Nobody is no secret.
fn too_few(sizes: &[usize], smallest: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&i| sizes[i] > 0).collect();
    order.sort_by_key(|&i| sizes[i]);
    let small = order.partition_point(|&i| sizes[i] < smallest);
    let enough = |n: usize| n >= 2 && order[..n].iter().map(|&i| sizes[i]).sum::<usize>() >= smallest;
    let n = if small == 0 { 0 } else { (small..order.len()).find(|&n| enough(n)).unwrap_or(order.len()) };
    order.truncate(n);
    order
}

/// Compares an agent's actions with the recorded ones.
pub fn match_actions(
    decisions: &Decisions<'_>,
    groupings: &[Grouping],
    settings: &MatchingSettings,
) -> Result<Matching> {
    settings.resampling.check()?;
    if !(settings.floor > 0.0 && settings.floor < 1.0) {
        let reason = "expected a probability between 0 and 1";
        return Err(Error::InvalidSetting { name: "floor", value: settings.floor.to_string(), reason });
    }
    decisions.check()?;
    let tallies = tally::of_patients(decisions, settings.floor);
    let doses = !decisions.levels.is_empty();
    let agreement = |patients: &[&Tally]| tally::agreement(patients, doses, &settings.resampling);
    let by_grouping = |grouping: &Grouping| {
        let mut groups: BTreeMap<&str, Vec<&Tally>> = BTreeMap::new();
        let mut unlabelled = 0;
        for tally in &tallies {
            match grouping.labels.get(&tally.patient) {
                Some(label) => groups.entry(label).or_default().push(tally),
                None => unlabelled += 1,
            }
        }
        let group = |(label, own): (&str, Vec<&Tally>)| GroupAgreement {
            label: label.into(),
            agreement: Some(agreement(&own)),
        };
        let groups = groups.into_iter().map(group).collect();
        GroupingAgreement { name: grouping.name.clone(), unlabelled: Some(unlabelled), groups }
    };
    Ok(Matching {
        settings: settings.clone(),
        overall: agreement(&tallies.iter().collect::<Vec<_>>()),
        groupings: groupings.iter().map(by_grouping).collect(),
    })
}
