//! Rules that an agent has to beat: they learn from the training stays as it does, and know no reward.
//!
//! | rule | first action | probability of an action |
//! |---|---|---|
//! | most frequent | the most frequent training action | its share of the training steps |
//! | of the state | the most frequent training action of the state | its share of the training steps there |
//! | previous | the action before in the same stay; at the first step the most frequent first action of training stays | how often it followed that action in training stays |
//! | logistic | the likeliest | a [logistic regression](LogisticFit) on measurements, context and the action before |
//!
//! Shares are smoothed, towards those of all steps and these towards equal ones, by as much as makes validation stays likeliest. Which rule is the best is
//! seen on the very stays that an agent is scored on; [`verdict`] says why that is no advantage for the agent.

mod counts;
mod logistic;
mod step;

pub use logistic::LogisticFit;

use crate::agreement::{Answers, Difference, Pairing, Standing, pair};
use crate::recorded::{RecordedStay, TrainStays, ValidationStays};
use coirl::resampling::Resampling;
use coirl::{Error, Result};
use counts::Counts;
use logistic::Logistic;
use serde::Serialize;
use step::{Before, Step, steps_of};

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Always the most frequent training action.
    MostFrequent,
    /// The most frequent training action of the state.
    MostFrequentOfState,
    /// The action before in the same stay.
    Previous,
    /// A logistic regression.
    Logistic,
}

/// All rules, fitted on training stays.
#[derive(Debug, Clone)]
pub struct Rules {
    n_states: usize,
    n_actions: usize,
    overall: Counts,
    shares: Vec<f64>,
    by_state: Counts,
    /// By the action before; the last row is of first steps.
    by_previous: Counts,
    logistic: Option<Logistic>,
}

/// How an agent compares with a rule on the same steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// The rule.
    pub rule: Rule,
    /// Both, resampled together by patient.
    #[serde(flatten)]
    pub pairing: Pairing,
}

/// What the comparisons with all rules come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verdict {
    /// The best rule; where the agent is not shown to be better than some, the best of these.
    pub rule: Rule,
    /// How the agent stands to it, and where it is better or worse to all others too.
    pub standing: Standing,
}

impl Rules {
    /// Fits the rules that count. States and actions are numbered from zero to these numbers.
    pub fn fit(train: &TrainStays, validation: &ValidationStays, n_states: usize, n_actions: usize) -> Result<Self> {
        let train = steps_of(train.stays(), n_states, n_actions)?;
        let validation = steps_of(validation.stays(), n_states, n_actions)?;
        if train.is_empty() {
            return Err(Error::shape("training stays with an action", "at least 1", 0));
        }
        type Row = fn(&Step<'_>, usize) -> usize;
        let rows: [Row; 3] = [|_, _| 0, |step, _| step.state, |step, n_actions| row_before(step.before, n_actions)];
        let fitted = |n_rows: usize, row: Row, base: Vec<f64>| {
            let seen = |stays: &[Vec<Step<'_>>]| -> Vec<(usize, u32)> {
                stays.iter().flatten().map(|step| (row(step, n_actions), step.action)).collect()
            };
            Counts::of(n_rows, base, seen(&train).into_iter()).chosen_on(&seen(&validation))
        };
        let overall = fitted(1, rows[0], vec![(n_actions as f64).recip(); n_actions]);
        let shares = overall.row(0);
        Ok(Self {
            n_states,
            n_actions,
            by_state: fitted(n_states, rows[1], shares.clone()),
            by_previous: fitted(n_actions + 1, rows[2], shares.clone()),
            overall,
            shares,
            logistic: None,
        })
    }

    /// The rules with a logistic regression; without one where there is too little to fit it on. The seed draws from very many training stays.
    pub fn with_logistic(self, train: &TrainStays, validation: &ValidationStays, seed: u64) -> Result<Self> {
        let train = steps_of(train.stays(), self.n_states, self.n_actions)?;
        let validation = steps_of(validation.stays(), self.n_states, self.n_actions)?;
        let logistic = Logistic::fit(&train, &validation, self.n_states, &self.shares, seed)?;
        Ok(Self { logistic, ..self })
    }

    /// How the logistic regression went; nothing where there is none.
    pub fn logistic(&self) -> Option<LogisticFit> {
        self.logistic.as_ref().map(Logistic::summary)
    }

    /// Shares of all actions in training stays, smoothed.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// What every rule comes to at the steps of these stays, one after the other.
    pub fn answers(&self, stays: &[RecordedStay]) -> Result<Vec<(Rule, Answers)>> {
        let stays = steps_of(stays, self.n_states, self.n_actions)?;
        let steps: Vec<&Step<'_>> = stays.iter().flatten().collect();
        let most = self.overall.most_frequent(0).unwrap_or_default();
        let by = |answer: &dyn Fn(&Step<'_>) -> (u32, f64)| steps.iter().map(|step| answer(step)).collect::<Vec<_>>();
        let n_actions = self.n_actions;
        let mut all = vec![
            (Rule::MostFrequent, by(&|step| (most, self.overall.probability(0, step.action)))),
            (
                Rule::MostFrequentOfState,
                by(&|step| {
                    let first = self.by_state.most_frequent(step.state).unwrap_or(most);
                    (first, self.by_state.probability(step.state, step.action))
                }),
            ),
            (
                Rule::Previous,
                by(&|step| {
                    let first = match step.before {
                        Before::Action(action) => action,
                        Before::Nothing => self.by_previous.most_frequent(n_actions).unwrap_or(most),
                    };
                    (first, self.by_previous.probability(row_before(step.before, n_actions), step.action))
                }),
            ),
        ];
        if let Some(logistic) = &self.logistic {
            all.push((Rule::Logistic, logistic.answers(&steps, &self.shares)?));
        }
        let answers = |own: Vec<(u32, f64)>| Answers {
            same: own.iter().zip(&steps).map(|((first, _), step)| *first == step.action).collect(),
            log_loss: own.iter().map(|(_, probability)| -probability.ln()).collect(),
        };
        Ok(all.into_iter().map(|(rule, own)| (rule, answers(own))).collect())
    }
}

fn row_before(before: Before, n_actions: usize) -> usize {
    match before {
        Before::Action(action) => action as usize,
        Before::Nothing => n_actions,
    }
}

/// Compares an agent with every rule. One entry per step in each list.
pub fn compare(
    patients: &[u64],
    agent: &Answers,
    rules: &[(Rule, Answers)],
    resampling: &Resampling,
) -> Result<Vec<Comparison>> {
    let rivals: Vec<&Answers> = rules.iter().map(|(_, own)| own).collect();
    let paired = pair(patients, agent, &rivals, resampling)?;
    Ok(rules.iter().zip(paired).map(|((rule, _), pairing)| Comparison { rule: *rule, pairing }).collect())
}

/// How an agent stands to the best rule by the action it takes first; nothing without rules.
///
/// It is better only where it is shown to be better than each rule: than the truly best one, too, whichever looks best on these patients. So
/// "better" is wrong no more often than a single comparison would be.
pub fn verdict(comparisons: &[Comparison]) -> Option<Verdict> {
    best(comparisons, |pairing| (pairing.same_action.value, pairing.same_action_difference))
}

/// How an agent stands to the best rule by the log-loss; nothing without rules.
pub fn log_loss_verdict(comparisons: &[Comparison]) -> Option<Verdict> {
    best(comparisons, |pairing| (-pairing.log_loss.value, pairing.log_loss_difference))
}

fn best(comparisons: &[Comparison], measure: fn(&Pairing) -> (f64, Difference)) -> Option<Verdict> {
    let rated = || comparisons.iter().map(|own| (own.rule, measure(&own.pairing)));
    // The first of equals.
    let highest = |most: Option<(Rule, (f64, Difference))>, own: (Rule, (f64, Difference))| match most {
        Some(most) if !(own.1.0 > most.1.0) => Some(most),
        _ => Some(own),
    };
    let (rule, (_, difference)) = rated().fold(None, highest)?;
    let unbeaten = rated().filter(|(_, (_, own))| own.standing != Standing::Better).fold(None, highest);
    Some(match (difference.standing, unbeaten) {
        (Standing::Worse, _) => Verdict { rule, standing: Standing::Worse },
        (_, None) => Verdict { rule, standing: Standing::Better },
        (_, Some((unbeaten, _))) => Verdict { rule: unbeaten, standing: Standing::NotShown },
    })
}
