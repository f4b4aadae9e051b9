//! Which states to use: how many, of which measurements, with which weights.
//!
//! The paper judges a model by two terms, on trajectories τ,
//!
//! ```text
//! T₁ = E_τ E_{s∈τ} |{a : (s, a) ∈ τ}|   different actions in one state (small is good)
//! T₂ = E_τ |{s : s ∈ τ}|                different states in a stay (large is good)
//! ```
//!
//! Both improve with the number of states alone, and T₁ falls even for actions that are shuffled within their stay. They are shown here
//! beside what makes them honest, all on validation stays: T₁ under shuffling, T₂ per step, the share of steps whose (state, action) no
//! training stay has, and the mean negative log-likelihood of actions under training frequencies, P(a | s) = (n(s, a) + β p(a)) / (n(s) + β).
//! The choice is the smallest model whose likelihood is within one standard error (over patients) of the best. Beside all of them stands the likelihood
//! of no state at all, the shares of actions in training stays: what does not gain on it says nothing about actions.

use super::build::Prepared;
use super::encoder::{Actions, Encoder};
use super::spec::Spec;
use super::stays::Stay;
use super::table::Table;
use coirl::clustering::{KMeans, Points};
use coirl::model::{ActionId, StateId};
use coirl::random::stream;
use coirl::{Error, Result};
use rand::seq::SliceRandom;
use serde::Serialize;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// β: observations' worth of the share that an action has in all states.
const STRENGTH: f64 = 5.0;
/// Times that actions are shuffled.
const SHUFFLES: u64 = 3;

/// What is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Numbers of states.
    pub clusters: Vec<usize>,
    /// States for looking at measurements one by one.
    pub screening_clusters: usize,
    /// How many of the best single measurements go on.
    pub keep: usize,
    /// Factors that the weight of each kept measurement is multiplied by, one at a time.
    pub weights: Vec<f64>,
}

impl Default for Selection {
    fn default() -> Self {
        Self { clusters: vec![25, 50, 100, 250, 500, 750], screening_clusters: 50, keep: 5, weights: vec![0.5, 2.0] }
    }
}

/// States of some measurements with some weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Why it was tried.
    pub stage: Stage,
    /// Measurements with their weights.
    pub measurements: Vec<(String, f64)>,
    /// Number of states: of those that were reached, where measurements have fewer different values than states were asked for.
    pub clusters: usize,
}

/// Why a candidate was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// One measurement alone.
    Screening,
    /// A subset with a number of states.
    Grid,
    /// A weight changed.
    Weights,
}

/// What was seen of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateScore {
    /// What was tried.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// T₁.
    pub actions_per_state: f64,
    /// T₁ with the actions of a stay shuffled.
    pub actions_per_state_shuffled: f64,
    /// T₂.
    pub states_per_stay: f64,
    /// T₂ by the steps of a stay.
    pub states_per_step: f64,
    /// Share of the validation steps whose (state, action) no training stay has.
    pub unseen: f64,
    /// Mean negative log-likelihood of an action, over validation patients.
    pub negative_log_likelihood: f64,
    /// Its standard error over patients.
    pub standard_error: f64,
    /// How much smaller that is than without any state, on average over the same patients.
    pub gain: f64,
    /// The standard error of that difference over patients.
    pub gain_error: f64,
    /// Whether every different value is a state of its own, so that more states cannot be had.
    pub exhausted: bool,
    /// Whether this is the choice.
    pub chosen: bool,
}

/// How likely the actions of validation patients are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Likelihood {
    /// Mean negative log-likelihood of an action, over patients.
    pub negative_log_likelihood: f64,
    /// Its standard error over patients.
    pub standard_error: f64,
}

/// What was tried, and what it must be better than.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selected {
    /// The shares of actions in training stays, whatever the state.
    pub without_state: Likelihood,
    /// All that was tried.
    pub candidates: Vec<CandidateScore>,
}

impl Selected {
    /// The choice.
    pub fn chosen(&self) -> Option<&CandidateScore> {
        self.candidates.iter().find(|score| score.chosen)
    }
}

/// Tries all candidates: every measurement alone, then subsets of the best with every number of states, then weights. Candidates that would be
/// the same, for want of different values, are tried once. `watch` is given each score with how many there are at most, and may stop.
pub fn select(
    table: &Table,
    spec: &Spec,
    selection: &Selection,
    seed: u64,
    mut watch: impl FnMut(&CandidateScore, usize) -> ControlFlow<()>,
) -> Result<Selected> {
    check(selection)?;
    if let Some(column) = &spec.state.column {
        let reason = format!("states are the numbers in {column}; there is nothing to select");
        return Err(Error::Spec { place: "state.column".into(), reason });
    }
    let trial = Trial::new(table, spec, seed)?;
    let all: Vec<String> = spec.state.measurements.clone();
    let keep = selection.keep.min(all.len());
    let n_subsets = keep + usize::from(keep < all.len());
    let total = all.len() + n_subsets * selection.clusters.len() + keep * selection.weights.len();
    let mut scores: Vec<CandidateScore> = Vec::with_capacity(total);
    let mut try_all = |candidates: Vec<Candidate>, scores: &mut Vec<CandidateScore>| -> Result<()> {
        for candidate in candidates {
            let like = |other: &&CandidateScore| {
                other.candidate.stage == candidate.stage && other.candidate.measurements == candidate.measurements
            };
            if scores.iter().filter(like).any(|other| other.exhausted && other.candidate.clusters <= candidate.clusters)
            {
                continue;
            }
            let score = trial.score(candidate)?;
            let stop = watch(&score, total).is_break();
            scores.push(score);
            if stop {
                return Err(Error::Interrupted { done: scores.len(), total });
            }
        }
        Ok(())
    };
    let alone = |name: &String| Candidate {
        stage: Stage::Screening,
        measurements: vec![(name.clone(), 1.0)],
        clusters: selection.screening_clusters,
    };
    try_all(all.iter().map(alone).collect(), &mut scores)?;
    let mut ranked: Vec<&CandidateScore> = scores.iter().collect();
    ranked.sort_by(|a, b| a.negative_log_likelihood.total_cmp(&b.negative_log_likelihood));
    let best: Vec<String> = ranked[..keep].iter().map(|score| score.candidate.measurements[0].0.clone()).collect();
    let own_weight = |name: &String| (name.clone(), spec.column(name).weight);
    let mut subsets: Vec<Vec<(String, f64)>> =
        (1..=keep).map(|n| best[..n].iter().map(|name| (name.clone(), 1.0)).collect()).collect();
    if keep < all.len() {
        subsets.push(all.iter().map(own_weight).collect());
    }
    let grid = subsets.iter().flat_map(|measurements| {
        let sizes = selection.clusters.iter();
        sizes.map(|&clusters| Candidate { stage: Stage::Grid, measurements: measurements.clone(), clusters })
    });
    try_all(grid.collect(), &mut scores)?;
    let simplest = choose(&mut scores);
    // The weight of a single measurement changes nothing.
    let varied = if simplest.measurements.len() > 1 { keep } else { 0 };
    let weighted = simplest
        .measurements
        .iter()
        .take(varied)
        .enumerate()
        .flat_map(|(i, _)| selection.weights.iter().map(move |factor| (i, *factor)));
    let candidates: Vec<Candidate> = weighted
        .map(|(i, factor)| {
            let mut candidate = Candidate { stage: Stage::Weights, ..simplest.clone() };
            candidate.measurements[i].1 *= factor;
            candidate
        })
        .collect();
    try_all(candidates, &mut scores)?;
    choose(&mut scores);
    Ok(Selected { without_state: trial.without_state().1, candidates: scores })
}

fn check(selection: &Selection) -> Result<()> {
    let empty = selection.clusters.is_empty() || selection.clusters.contains(&0) || selection.screening_clusters == 0;
    if empty || selection.keep == 0 {
        return Err(Error::InvalidSetting {
            name: "numbers of states",
            value: format!("{:?}", selection.clusters),
            reason: "expected at least one, all above 0",
        });
    }
    Ok(())
}

/// Marks and gives the smallest candidate within one standard error of the best: the fewest states, then the fewest measurements. Single measurements that
/// were only looked at are not chosen.
fn choose(scores: &mut [CandidateScore]) -> Candidate {
    let open = |score: &&CandidateScore| score.candidate.stage != Stage::Screening;
    let by_likelihood =
        |a: &&CandidateScore, b: &&CandidateScore| a.negative_log_likelihood.total_cmp(&b.negative_log_likelihood);
    let limit = scores
        .iter()
        .filter(open)
        .min_by(by_likelihood)
        .map_or(f64::INFINITY, |best| best.negative_log_likelihood + best.standard_error);
    let size = |score: &CandidateScore| (score.candidate.clusters, score.candidate.measurements.len());
    let within = (0..scores.len()).filter(|&i| open(&&scores[i]) && scores[i].negative_log_likelihood <= limit);
    let chosen = within.min_by(|&a, &b| {
        size(&scores[a])
            .cmp(&size(&scores[b]))
            .then(scores[a].negative_log_likelihood.total_cmp(&scores[b].negative_log_likelihood))
    });
    let chosen = chosen.unwrap_or_default();
    scores.iter_mut().enumerate().for_each(|(i, score)| score.chosen = i == chosen);
    scores[chosen].candidate.clone()
}

/// A stay to be judged: its patient, its rows among the points of its part, and its actions.
struct Path {
    patient: u32,
    rows: std::ops::Range<usize>,
    actions: Vec<ActionId>,
}

/// What all candidates share: points of every measurement with weight one, and actions.
struct Trial {
    names: Vec<String>,
    /// Coordinates of a point, those of the action before included.
    width: usize,
    train_points: Vec<f32>,
    validation_points: Vec<f32>,
    train: Vec<Path>,
    validation: Vec<Path>,
    n_actions: usize,
    seed: u64,
}

impl Trial {
    fn new(table: &Table, spec: &Spec, seed: u64) -> Result<Self> {
        let mut unweighted = spec.clone();
        for name in &spec.state.measurements {
            unweighted.state.columns.entry(name.clone()).or_default().weight = 1.0;
        }
        let prepared = Prepared::new(table, &unweighted, seed)?;
        if prepared.parts.validation.is_empty() {
            return Err(Error::Spec {
                place: "split.validation".into(),
                reason: "0; models are chosen on validation stays".into(),
            });
        }
        let paths = |stays: &[Stay]| paths(table, &prepared.actions, stays);
        Ok(Self {
            names: spec.state.measurements.clone(),
            width: prepared.measurements.len(),
            validation_points: Encoder::points(&prepared.measurements, table, &prepared.parts.validation)?.0,
            train: paths(&prepared.parts.train)?,
            validation: paths(&prepared.parts.validation)?,
            n_actions: prepared.actions.len(),
            train_points: prepared.train_points,
            seed,
        })
    }

    /// The columns of these measurements, weighted, and those of the action before, as far apart among them as among all measurements.
    fn subset(&self, points: &[f32], measurements: &[(String, f64)]) -> Vec<f32> {
        let measured = measurements
            .iter()
            .filter_map(|(name, weight)| Some((self.names.iter().position(|own| own == name)?, *weight as f32)));
        let size = measurements.iter().map(|(_, weight)| weight.powi(2)).sum::<f64>();
        let scale = (size / self.names.len() as f64).sqrt() as f32;
        let at: Vec<(usize, f32)> = measured.chain((self.names.len()..self.width).map(|j| (j, scale))).collect();
        points.chunks_exact(self.width).flat_map(|row| at.iter().map(|&(j, weight)| weight * row[j])).collect()
    }

    /// What is seen of a candidate. Its number of states becomes the one that was reached.
    fn score(&self, candidate: Candidate) -> Result<CandidateScore> {
        let width = candidate.measurements.len() + self.width - self.names.len();
        let points = Points::new(self.subset(&self.train_points, &candidate.measurements), width)?;
        let settings = |clusters| KMeans { clusters, seed: self.seed, ..KMeans::default() };
        let (clustering, exhausted) = match settings(candidate.clusters).fit(&points) {
            // A measurement with few values has few states.
            Err(Error::TooFewDistinctRows { distinct, .. }) => (settings(distinct).fit(&points)?, true),
            fitted => (fitted?, false),
        };
        let clusters = clustering.centroids.n_clusters();
        let validation = Points::new(self.subset(&self.validation_points, &candidate.measurements), width)?;
        let states: Vec<StateId> = clustering.assign(&validation)?.into_iter().map(StateId).collect();
        let mut counts: HashMap<(u32, u32), f64> = HashMap::new();
        let mut rows = vec![0.0; clusters];
        for path in &self.train {
            for (action, &state) in path.actions.iter().zip(&clustering.assignment[path.rows.clone()]) {
                *counts.entry((state, action.0)).or_default() += 1.0;
                rows[state as usize] += 1.0;
            }
        }
        let shares = self.shares();
        let cost = |state: StateId, action: ActionId| {
            let times = counts.get(&(state.0, action.0)).copied().unwrap_or_default();
            -((times + STRENGTH * shares[action.index()]) / (rows[state.index()] + STRENGTH)).ln()
        };
        let mut by_patient = ByPatient::default();
        let (mut unseen, mut steps) = (0.0, 0.0);
        let mut terms = [0.0; 4];
        for (number, path) in self.validation.iter().enumerate() {
            let visited = &states[path.rows.clone()];
            for (&state, &action) in visited.iter().zip(&path.actions) {
                by_patient.add(path.patient, cost(state, action));
                unseen += f64::from(u8::from(!counts.contains_key(&(state.0, action.0))));
                steps += 1.0;
            }
            let mut distinct = visited.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            terms[0] += actions_per_state(visited, &path.actions);
            terms[1] += self.shuffled(visited, &path.actions, number as u64);
            terms[2] += distinct.len() as f64;
            terms[3] += distinct.len() as f64 / visited.len() as f64;
        }
        let [actions_per_state, actions_per_state_shuffled, states_per_stay, states_per_step] =
            terms.map(|sum| sum / self.validation.len() as f64);
        let costs: Vec<f64> = by_patient.means();
        let Likelihood { negative_log_likelihood, standard_error } = Likelihood::of(&costs);
        let (without_state, _) = self.without_state();
        let gains: Vec<f64> = without_state.iter().zip(&costs).map(|(without, own)| without - own).collect();
        let gain = Likelihood::of(&gains);
        Ok(CandidateScore {
            candidate: Candidate { clusters, ..candidate },
            actions_per_state,
            actions_per_state_shuffled,
            states_per_stay,
            states_per_step,
            unseen: unseen / steps,
            negative_log_likelihood,
            standard_error,
            gain: gain.negative_log_likelihood,
            gain_error: gain.standard_error,
            exhausted,
            chosen: false,
        })
    }

    /// The shares of actions in training stays, with one more of each, so that one that nobody took has a chance.
    fn shares(&self) -> Vec<f64> {
        let mut times = vec![1.0; self.n_actions];
        self.train.iter().flat_map(|path| &path.actions).for_each(|action| times[action.index()] += 1.0);
        let total: f64 = times.iter().sum();
        times.into_iter().map(|n| n / total).collect()
    }

    /// The cost of an action of each validation patient where only training shares are known, and the mean over patients.
    fn without_state(&self) -> (Vec<f64>, Likelihood) {
        let shares = self.shares();
        let mut by_patient = ByPatient::default();
        for path in &self.validation {
            path.actions.iter().for_each(|action| by_patient.add(path.patient, -shares[action.index()].ln()));
        }
        let costs = by_patient.means();
        let likelihood = Likelihood::of(&costs);
        (costs, likelihood)
    }

    fn shuffled(&self, visited: &[StateId], actions: &[ActionId], number: u64) -> f64 {
        let mut rng = stream(self.seed, "actions shuffled within a stay", number);
        let mut actions = actions.to_vec();
        let once = |_: u64| {
            actions.shuffle(&mut rng);
            actions_per_state(visited, &actions)
        };
        (0..SHUFFLES).map(once).sum::<f64>() / SHUFFLES as f64
    }
}

impl Likelihood {
    /// Of the costs of patients.
    fn of(costs: &[f64]) -> Self {
        let n = costs.len() as f64;
        let mean = costs.iter().sum::<f64>() / n;
        let variance = costs.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self { negative_log_likelihood: mean, standard_error: (variance / n).sqrt() }
    }
}

fn paths(table: &Table, actions: &Actions, stays: &[Stay]) -> Result<Vec<Path>> {
    let mut at = 0;
    let path = |stay: &Stay| {
        let rows = at..at + stay.rows.len();
        at = rows.end;
        let taken = stay.rows.iter().map(|&row| actions.of_row(table, row as usize)).collect::<Result<_>>()?;
        Ok(Path { patient: stay.patient, rows, actions: taken })
    };
    stays.iter().map(path).collect()
}

/// Different actions in a state, on average over the states of a stay.
fn actions_per_state(visited: &[StateId], actions: &[ActionId]) -> f64 {
    let mut pairs: Vec<(StateId, ActionId)> = visited.iter().copied().zip(actions.iter().copied()).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let states = pairs.chunk_by(|a, b| a.0 == b.0).count();
    pairs.len() as f64 / states.max(1) as f64
}

/// Costs of steps by patient, in the order of the stays: the numbers of patients are in that of the table.
#[derive(Default)]
struct ByPatient {
    places: HashMap<u32, usize>,
    /// Sum of the costs, and number of steps.
    sums: Vec<(f64, f64)>,
}

impl ByPatient {
    fn add(&mut self, patient: u32, cost: f64) {
        let place = *self.places.entry(patient).or_insert(self.sums.len());
        self.sums.resize(self.sums.len().max(place + 1), (0.0, 0.0));
        self.sums[place].0 += cost;
        self.sums[place].1 += 1.0;
    }

    /// The mean cost of a step of each patient.
    fn means(self) -> Vec<f64> {
        self.sums.into_iter().map(|(cost, n)| cost / n).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_actions_are_counted_by_state() {
        let states = [0, 0, 1, 0].map(StateId);
        assert_eq!(actions_per_state(&states, &[1, 2, 5, 1].map(ActionId)), 1.5);
        assert_eq!(actions_per_state(&states, &[1, 1, 1, 1].map(ActionId)), 1.0);
    }

    #[test]
    fn the_smallest_model_within_one_standard_error_is_chosen() {
        let score = |clusters, cost, stage| CandidateScore {
            candidate: Candidate { stage, measurements: vec![("x".into(), 1.0)], clusters },
            actions_per_state: 1.0,
            actions_per_state_shuffled: 1.0,
            states_per_stay: 1.0,
            states_per_step: 1.0,
            unseen: 0.0,
            negative_log_likelihood: cost,
            standard_error: 0.1,
            gain: 0.0,
            gain_error: 0.0,
            exhausted: false,
            chosen: false,
        };
        let mut scores = vec![
            score(5, 0.1, Stage::Screening),
            score(100, 1.00, Stage::Grid),
            score(50, 1.05, Stage::Grid),
            score(25, 1.20, Stage::Grid),
        ];
        assert_eq!(choose(&mut scores).clusters, 50);
        assert!(scores[2].chosen && !scores[1].chosen);
    }
}
