//! The maximum-margin cutting-plane learner for an expert who can be asked.
//!
//! A demonstration μ* in context c says of every other way to act that W*·(c ⊙ (μ* − μ)) ≥ 0: a cut through the
//! mappings. All cuts are kept, and the agent acts by the centre of the cone they leave ([`Centre`]). One step is one
//! context:
//!
//! 1. plan at W, ask; where the agent does well enough, nothing changes;
//! 2. otherwise keep the demonstration, add its cut, and move W to the new centre;
//! 3. plan at W for all demonstrations kept. Where the agent acts differently from the demonstration and W does not
//!    prefer the demonstration, add that cut too; move to the new centre, and repeat until nothing is violated.
//!
//! The third part asks nobody: it costs plans (in blocks), not demonstrations. There are finitely many policies and
//! every cut that is added removes the current W, so it ends; a cap or a contradiction between cuts ends it earlier.
//! With exact demonstrations of a linear mapping, W* is never cut off. Every demonstration of an agent that is worse
//! than the expert removes the centre of what is left; no bound on their number is claimed.

use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::Record;
use super::settings::check_count;
use crate::demos::Answer;
use crate::error::Result;
use crate::optim::normalise;
use crate::optim::{Centre, LEAST_MARGIN};
use crate::optim::{dot, norm};

/// Settings of the cutting-plane learner.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CuttingPlane {
    /// Which point of the cone the agent acts by.
    pub centre: Centre,
    /// Whether the demonstrations kept are planned for again, and what they still say is learned, before the next
    /// question.
    pub replay: bool,
    /// How often that is repeated between two questions.
    pub max_rounds: usize,
    /// Cuts kept; beyond that the ones farthest from W are forgotten.
    pub max_cuts: usize,
}

impl Default for CuttingPlane {
    fn default() -> Self {
        Self { centre: Centre::Analytic, replay: true, max_rounds: 50, max_cuts: 1000 }
    }
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    iterate: Vec<f64>,
    kept: Shown,
    /// Of unit length.
    cuts: Vec<Vec<f64>>,
    /// Differences no longer than this are rounding errors: agent and expert act alike.
    shortest: f64,
    /// Cuts that W is not strictly inside of, and the largest −aᵢ·W/‖W‖ of them (zero: on the cut).
    violated: usize,
    violation: f64,
    /// Questions after which replay ended with cuts possibly left to add.
    unfinished: u64,
    /// Cuts forgotten.
    forgotten: u64,
}

/// The demonstrations an expert has given, in the order given.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    pub(super) indices: Vec<usize>,
    pub(super) expectations: Vec<Vec<f64>>,
}

impl Shown {
    /// Keeps one; the same context's earlier one gives way.
    pub(super) fn keep(&mut self, index: usize, expectations: Vec<f64>) {
        match self.indices.iter().position(|&i| i == index) {
            Some(at) => self.expectations[at] = expectations,
            None => {
                self.indices.push(index);
                self.expectations.push(expectations);
            }
        }
    }

    /// Whether these are demonstrations of such a problem.
    pub(super) fn fit(&self, problem: &Problem<'_>) -> bool {
        self.indices.len() == self.expectations.len()
            && self.indices.iter().all(|&index| index < problem.len())
            && self.expectations.iter().all(|mu| mu.len() == problem.n_features())
    }

    pub(super) fn len(&self) -> usize {
        self.indices.len()
    }

    /// c ⊙ (μ − μ*) for the agent's μ in the context of demonstration `at`.
    pub(super) fn difference(&self, problem: &Problem<'_>, at: usize, agent: &[f64]) -> Vec<f64> {
        let mut difference = vec![0.0; problem.n_parameters()];
        problem.data().add_difference(self.indices[at], agent, &self.expectations[at], 1.0, &mut difference);
        difference
    }
}

/// The length up to which c ⊙ (μ − μ*) is rounding error, by the largest that it can have.
pub(super) fn shortest_difference(problem: &Problem<'_>) -> Result<f64> {
    Ok(1e-10 * problem.sum_bound()?)
}

/// Unit-length cuts closer than this are one.
const SAME_CUT: f64 = 1e-9;

impl State {
    /// Adds −difference at unit length unless it is nothing or already there.
    fn cut(&mut self, mut difference: Vec<f64>) -> bool {
        if norm(&difference) <= self.shortest {
            return false;
        }
        difference.iter_mut().for_each(|x| *x = -*x);
        normalise(&mut difference);
        let apart = |other: &Vec<f64>| other.iter().zip(&difference).any(|(x, y)| (x - y).abs() > SAME_CUT);
        let new = self.cuts.iter().all(apart);
        if new {
            self.cuts.push(difference);
        }
        new
    }

    /// To the centre of the cuts, forgetting those beyond the limit. Where the cuts cancel, W stays.
    fn centre(&mut self, own: &CuttingPlane) {
        if let Some(point) = own.centre.of(&self.cuts) {
            self.iterate = point;
        }
        if self.cuts.len() > own.max_cuts {
            let mut order: Vec<usize> = (0..self.cuts.len()).collect();
            let margins: Vec<f64> = self.cuts.iter().map(|a| dot(a, &self.iterate)).collect();
            order.sort_by(|&i, &j| margins[i].total_cmp(&margins[j]));
            self.forgotten += (order.len() - own.max_cuts) as u64;
            order.truncate(own.max_cuts);
            order.sort_unstable();
            self.cuts = order.into_iter().map(|i| std::mem::take(&mut self.cuts[i])).collect();
        }
        let size = norm(&self.iterate);
        let margins = self.cuts.iter().map(|a| dot(a, &self.iterate) / size);
        (self.violated, self.violation) = margins
            .filter(|&margin| margin <= LEAST_MARGIN)
            .fold((0, 0.0), |(count, most): (usize, f64), margin| (count + 1, most.max(-margin)));
    }

    /// Plans for all demonstrations at W and adds the cuts W does not satisfy; true if there were new ones.
    fn replay(&mut self, problem: &Problem<'_>) -> Result<bool> {
        let agents = problem.best_responses(&self.iterate, &self.kept.indices)?;
        let mut any = false;
        for (at, agent) in agents.iter().enumerate() {
            let difference = self.kept.difference(problem, at, &agent.feature_expectations);
            // Equality, where W cannot tell the agent from the demonstration, counts: the demonstration was chosen.
            if dot(&self.iterate, &difference) >= 0.0 {
                any |= self.cut(difference);
            }
        }
        Ok(any)
    }
}

impl Learner for CuttingPlane {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        check_count("max_rounds", self.max_rounds)?;
        check_count("max_cuts", self.max_cuts)?;
        let mut iterate = from.initial.map_or_else(|| vec![1.0; problem.n_parameters()], <[f64]>::to_vec);
        normalise(&mut iterate);
        Ok(State {
            iterate,
            kept: Shown::default(),
            cuts: Vec::new(),
            shortest: shortest_difference(problem)?,
            violated: 0,
            violation: 0.0,
            unfinished: 0,
            forgotten: 0,
        })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let index = run.context(problem);
        let agent = problem.best_response(&state.iterate, index)?.feature_expectations;
        let mut batch_loss = None;
        if let Answer::Demonstration(expert) = problem.ask(index, &agent)? {
            state.kept.keep(index, expert);
            let at = state.kept.indices.iter().position(|&i| i == index).unwrap_or_default();
            let difference = state.kept.difference(problem, at, &agent);
            let size = norm(&state.iterate);
            batch_loss = (size > 0.0).then(|| dot(&state.iterate, &difference) / size);
            if state.cut(difference) {
                state.centre(self);
            }
            let mut rounds = 0;
            while self.replay && state.replay(problem)? {
                state.centre(self);
                rounds += 1;
                // No centre satisfies cuts that contradict each other; more rounds would only add to them.
                if rounds == self.max_rounds || state.violated > 0 {
                    state.unfinished += 1;
                    break;
                }
            }
        }
        Ok(Step::from(Record {
            batch_loss,
            demonstrations: state.kept.len() as u64,
            violation: Some(state.violation),
            ..Record::default()
        }))
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        let n = problem.n_parameters();
        state.kept.fit(problem) && std::iter::once(&state.iterate).chain(&state.cuts).all(|list| list.len() == n)
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        Some(state.iterate.clone())
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    fn guarantee(&self, state: &State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let guarantee = Guarantee::none("cuts")
            .with("cuts", state.cuts.len() as f64)
            .with("demonstrations", state.kept.len() as f64)
            .with_count("violated", state.violated as u64)
            .with_count("forgotten", state.forgotten)
            .with_count("unfinished", state.unfinished);
        let violated = state.violated > 0;
        Ok((None, if violated { guarantee.with("violation", state.violation) } else { guarantee }))
    }

    fn has_loss(&self) -> bool {
        true
    }
}
