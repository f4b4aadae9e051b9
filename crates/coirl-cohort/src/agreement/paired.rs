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

use super::student::{normal_within, student_quantile};
use crate::patients::dense;
use coirl::Result;
use coirl::check::check_length;
use coirl::resampling::{Estimate, Interval, Resampling};
use serde::Serialize;

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

/// Compares an agent with each of several rivals. One entry per step in each list.
pub fn pair(patients: &[u64], agent: &Answers, rivals: &[&Answers], resampling: &Resampling) -> Result<Vec<Pairing>> {
    resampling.check()?;
    for answers in rivals.iter().copied().chain([agent]) {
        check_length("answers (one per step)", patients.len(), answers.same.len())?;
        check_length("log-losses (one per step)", patients.len(), answers.log_loss.len())?;
    }
    let (place, n) = dense(patients);
    let mut steps = vec![0.0; n];
    place.iter().for_each(|&patient| steps[patient] += 1.0);
    let columns: Vec<[Vec<f64>; N_SUMS]> = rivals.iter().map(|rival| sums(&place, n, agent, rival)).collect();
    let resampling = Resampling { resamples: resampling.resamples.max(FEWEST_RESAMPLES), ..resampling.clone() };
    let means = |times: &[f64]| -> Vec<[f64; N_SUMS]> {
        let sum = |column: &Vec<f64>| column.iter().zip(times).map(|(x, times)| times * x).sum::<f64>();
        let all = sum(&steps);
        columns.iter().map(|own| std::array::from_fn(|i| sum(&own[i]) / all)).collect()
    };
    let values = means(&vec![1.0; n]);
    let resampled = resampling.of_resamples(n, means);
    let levels = Levels::new(resampling.level, rivals.len(), n);
    let pairing = |(r, values): (usize, [f64; N_SUMS])| {
        let numbers = |i: usize| resampled.iter().map(|own| own[r][i]).collect::<Vec<f64>>();
        let estimate = |i: usize| Estimate { value: values[i], interval: Interval::of(numbers(i), resampling.level) };
        let difference = |i: usize| {
            let differing = columns[r][i].iter().filter(|x| **x != 0.0).count();
            levels.difference(values[i], numbers(i), differing)
        };
        let less_loss = difference(LESS_LOSS);
        Pairing {
            same_action: estimate(SAME),
            log_loss: estimate(LOSS),
            same_action_difference: difference(MORE_SAME),
            log_loss_difference: Difference {
                value: -less_loss.value,
                interval: less_loss.interval.map(|own| Interval { lower: -own.upper, upper: -own.lower }),
                ..less_loss
            },
        }
    };
    Ok(values.into_iter().enumerate().map(pairing).collect())
}

/// What is added up of every patient: steps on which the rival is right, its losses, and by how much the agent is ahead in both.
const N_SUMS: usize = 4;
const SAME: usize = 0;
const LOSS: usize = 1;
const MORE_SAME: usize = 2;
const LESS_LOSS: usize = 3;

fn sums(place: &[usize], n: usize, agent: &Answers, rival: &Answers) -> [Vec<f64>; N_SUMS] {
    let mut sums: [Vec<f64>; N_SUMS] = std::array::from_fn(|_| vec![0.0; n]);
    for (step, &patient) in place.iter().enumerate() {
        let hit = |answers: &Answers| f64::from(u8::from(answers.same[step]));
        sums[SAME][patient] += hit(rival);
        sums[LOSS][patient] += rival.log_loss[step];
        sums[MORE_SAME][patient] += hit(agent) - hit(rival);
        sums[LESS_LOSS][patient] += rival.log_loss[step] - agent.log_loss[step];
    }
    sums
}

/// Levels of the percentiles: of one difference, and of the one among several that looks worst.
struct Levels {
    single: f64,
    worst: f64,
}

impl Levels {
    fn new(level: f64, rivals: usize, n_patients: usize) -> Self {
        let shared = 1.0 - (1.0 - level) / rivals.max(1) as f64;
        Self { single: raised(level, n_patients), worst: raised(shared, n_patients) }
    }

    /// What is shown of a difference of which more is better.
    fn difference(&self, value: f64, resampled: Vec<f64>, patients: usize) -> Difference {
        let enough = patients >= FEWEST_THAT_DIFFER;
        let worst = Interval::of(resampled.clone(), self.worst).filter(|_| enough);
        let interval = Interval::of(resampled, self.single).filter(|_| enough);
        let standing = match (interval, worst) {
            (Some(own), _) if own.lower > 0.0 => Standing::Better,
            (_, Some(worst)) if worst.upper < 0.0 => Standing::Worse,
            _ => Standing::NotShown,
        };
        Difference { value, interval, patients, standing }
    }
}

/// The level whose percentiles are as far apart as Student's t would have them.
fn raised(level: f64, n_patients: usize) -> f64 {
    let degrees = n_patients.saturating_sub(1);
    let share = n_patients as f64 / degrees as f64;
    if degrees == 0 { 1.0 } else { normal_within(share.sqrt() * student_quantile(level, degrees)) }
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
            log_loss: patients
                .iter()
                .map(|&patient| if range.contains(&(patient as usize)) { 0.0 } else { 1.0 })
                .collect(),
        };
        let (agent, rival) = (right(0..wins), right(wins..wins + losses));
        let rivals = vec![&rival; rivals];
        pair(&patients, &agent, &rivals, &Resampling { resamples: 20, ..Resampling::default() }).unwrap()[0]
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
