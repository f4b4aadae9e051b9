//! Two ways to act on the same steps, compared by what each comes to on the same patients.
//!
//! ```text
//! difference = Σᵢ (aᵢ − bᵢ) / Σᵢ nᵢ
//! ```
//!
//! over patients i with nᵢ steps, on which the two come to aᵢ and bᵢ. Both are resampled together, by patient ([`Resampling`]). Percentiles of few
//! patients are too narrow: the level is raised so that the interval of a mean is as wide as Student's t has it (Hesterberg 2015),
//! Φ(√(n/(n − 1)) t₍ₙ₋₁₎) in place of Φ(z). Where fewer than six patients tell the two apart nothing can be shown: all of them on one side
//! happens by chance more often than once in forty.
//!
//! *Better* needs the interval on one side of zero. Whoever must be better than each of several rivals needs no correction for their number: the best of
//! them is among those that have to be beaten. *Worse* than one that was picked among rivals does, and its level is divided by their number.

use crate::patients::dense;
use coirl::Result;
use coirl::check::check_length;
use coirl::resampling::{Estimate, Interval, Resampling};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Patients on whom two must differ before either can be shown to be better: 2⁻⁵ > 0.025 > 2⁻⁶.
const FEWEST_THAT_DIFFER: usize = 6;
/// Resamples at least: the ends of an interval for few patients are far out.
const FEWEST_RESAMPLES: usize = 2000;

/// What one way to act comes to at every step.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Whether its first action is the recorded one.
    pub same: Vec<bool>,
    /// −ln of its probability of the recorded action.
    pub log_loss: Vec<f64>,
}

/// What is shown of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Better by more than chance.
    Better,
    /// Neither.
    NotShown,
    /// Worse by more than chance, also for the worst looking of all rivals.
    Worse,
}

/// A difference on the same steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Over all patients.
    pub value: f64,
    /// Over resampled ones; nothing where too few patients tell the two apart.
    pub interval: Option<Interval>,
    /// Patients on whom the two differ.
    pub patients: usize,
    /// What is shown.
    pub standing: Standing,
}

/// How an agent and a rival do on the same steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pairing {
    /// Share of steps on which the first action of the rival is the recorded one.
    pub same_action: Estimate,
    /// Log-loss of the rival.
    pub log_loss: Estimate,
    /// The agent's share of steps with the recorded action minus that of the rival.
    pub same_action_difference: Difference,
    /// The agent's log-loss minus that of the rival: below zero the agent is better.
    pub log_loss_difference: Difference,
}

/// Compares an agent with one of so many rivals. One entry per step in each list.
pub fn pair(
    patients: &[u64],
    agent: &Answers,
    rival: &Answers,
    rivals: usize,
    resampling: &Resampling,
) -> Result<Pairing> {
    resampling.check()?;
    for answers in [agent, rival] {
        check_length("answers (one per step)", patients.len(), answers.same.len())?;
        check_length("log-losses (one per step)", patients.len(), answers.log_loss.len())?;
    }
    let (place, n) = dense(patients);
    let mut sums = vec![Sums::default(); n];
    for (step, &patient) in place.iter().enumerate() {
        let own = &mut sums[patient];
        let hit = |answers: &Answers| f64::from(u8::from(answers.same[step]));
        own.steps += 1.0;
        own.same += hit(rival);
        own.log_loss += rival.log_loss[step];
        own.more_same += hit(agent) - hit(rival);
        own.less_loss += rival.log_loss[step] - agent.log_loss[step];
    }
    let resampling = Resampling { resamples: resampling.resamples.max(FEWEST_RESAMPLES), ..resampling.clone() };
    let of = |level: f64| Resampling { level, ..resampling.clone() }.estimates(n, |times| means(&sums, times));
    let [same_action, log_loss, ..] = of(resampling.level);
    let [.., same, loss] = of(raised(resampling.level, n));
    let [.., same_of_all, loss_of_all] = of(raised(1.0 - (1.0 - resampling.level) / rivals.max(1) as f64, n));
    let differ = |of: fn(&Sums) -> f64| sums.iter().filter(|own| of(own) != 0.0).count();
    let less_loss = difference(loss, loss_of_all, differ(|own| own.less_loss));
    Ok(Pairing {
        same_action,
        log_loss,
        same_action_difference: difference(same, same_of_all, differ(|own| own.more_same)),
        log_loss_difference: Difference {
            value: -less_loss.value,
            interval: less_loss.interval.map(|own| Interval { lower: -own.upper, upper: -own.lower }),
            ..less_loss
        },
    })
}

/// What one patient's steps come to.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    steps: f64,
    same: f64,
    log_loss: f64,
    more_same: f64,
    less_loss: f64,
}

/// Shares and means over all steps, of patients that count so often.
fn means(sums: &[Sums], times: &[f64]) -> [f64; 4] {
    let sum = |of: fn(&Sums) -> f64| sums.iter().zip(times).map(|(own, times)| times * of(own)).sum::<f64>();
    let steps = sum(|own| own.steps);
    [sum(|own| own.same), sum(|own| own.log_loss), sum(|own| own.more_same), sum(|own| own.less_loss)].map(|x| x / steps)
}

/// What is shown by an interval on its own, and by the one for all rivals. More is better.
fn difference(own: Estimate, of_all: Estimate, patients: usize) -> Difference {
    let enough = |estimate: Estimate| estimate.interval.filter(|_| patients >= FEWEST_THAT_DIFFER);
    let interval = enough(own);
    let standing = match (interval, enough(of_all)) {
        (Some(own), _) if own.lower > 0.0 => Standing::Better,
        (_, Some(of_all)) if of_all.upper < 0.0 => Standing::Worse,
        _ => Standing::NotShown,
    };
    Difference { value: own.value, interval, patients, standing }
}

/// The level whose percentiles are as far apart as Student's t would have them.
fn raised(level: f64, n_patients: usize) -> f64 {
    let n = n_patients as f64;
    match (StudentsT::new(0.0, 1.0, n - 1.0), Normal::new(0.0, 1.0)) {
        (Ok(student), Ok(normal)) => {
            let t = student.inverse_cdf(0.5 + 0.5 * level);
            2.0 * normal.cdf((n / (n - 1.0)).sqrt() * t) - 1.0
        }
        _ => 1.0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    /// Patients with as many steps each; on `wins` of them the agent is right and the rival wrong, on `losses` the other way round.
    fn paired(n: usize, wins: usize, losses: usize, rivals: usize) -> Pairing {
        let patients: Vec<u64> = (0..n as u64).flat_map(|patient| [patient; 3]).collect();
        let right = |range: std::ops::Range<usize>| Answers {
            same: patients.iter().map(|&patient| range.contains(&(patient as usize))).collect(),
            log_loss: patients.iter().map(|&patient| if range.contains(&(patient as usize)) { 0.0 } else { 1.0 }).collect(),
        };
        let (agent, rival) = (right(0..wins), right(wins..wins + losses));
        pair(&patients, &agent, &rival, rivals, &Resampling { resamples: 20, ..Resampling::default() }).unwrap()
    }

    #[test]
    fn differences_are_of_the_same_steps_and_have_a_sign() {
        let found = paired(40, 20, 4, 1);
        assert_eq!((found.same_action.value, found.log_loss.value), (0.1, 0.9));
        assert!((found.same_action_difference.value - 0.4).abs() < 1e-12);
        assert!((found.log_loss_difference.value + 0.4).abs() < 1e-12);
        assert!(found.log_loss_difference.interval.unwrap().upper < 0.0);
        assert_eq!(found.same_action_difference.standing, Standing::Better);
        assert_eq!(found.log_loss_difference.standing, Standing::Better);
        assert_eq!(found.same_action_difference.patients, 24);
        assert_eq!(paired(40, 4, 20, 4).same_action_difference.standing, Standing::Worse);
        assert_eq!(paired(40, 11, 10, 1).same_action_difference.standing, Standing::NotShown);
    }

    #[test]
    fn five_patients_show_nothing() {
        let [five, six] = [5, 6].map(|wins| paired(40, wins, 0, 1).same_action_difference);
        assert_eq!((five.standing, five.interval), (Standing::NotShown, None));
        assert_eq!(six.standing, Standing::Better);
    }

    #[test]
    fn few_patients_have_wider_intervals_and_several_rivals_make_it_harder_to_be_worse() {
        assert!((raised(0.95, 1_000_000) - 0.95).abs() < 1e-4);
        // 2.571 standard errors of five degrees of freedom, times the root of 6/5.
        assert!((raised(0.95, 6) - 0.995_14).abs() < 1e-4, "{}", raised(0.95, 6));
        assert_eq!(raised(0.95, 1), 1.0);
        assert_eq!(paired(30, 3, 11, 1).same_action_difference.standing, Standing::Worse);
        assert_eq!(paired(30, 3, 11, 50).same_action_difference.standing, Standing::NotShown);
    }
}
