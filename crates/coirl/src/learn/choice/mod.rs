//! The default learner: experts as soft-optimal planners, by penalised maximum likelihood to convergence.
//!
//! ```text
//! minimise   −Σ log P_θ(a | s)  +  λ/2 ‖θ‖²,     P_θ = (1 − ε) π_θ + ε/|A(s)|,     π_θ(a | s) = exp(Q_θ(s, a) − V_θ(s))
//! ```
//!
//! over rewards of any length ([`Choices`]), in units that do not depend on those of the data (`design.rs`), by L-BFGS on all
//! demonstrations. The form of f (one reward for everybody, linear in the context, a network) and λ are chosen by the likelihood of
//! demonstrations that were left out (`select.rs`), ε is estimated with θ. From feature expectations the dual of matching them takes the
//! place of the likelihood. The agent plans for the reward it has learned. Cost of a step: about one soft plan and one linear system per
//! demonstration, several side by side.

mod bends;
mod chooser;
mod design;
mod errors;
mod fit;
mod metric;
mod optima;
mod select;

pub use chooser::Chooser;
pub use design::Form;
pub use errors::{ErrorKind, StandardErrors};
pub use select::Candidate;

use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::{Record, Status};
use crate::agent::Agent;
use crate::demos::Demonstrations;
use crate::error::{Error, Result, check_positive};
use crate::model::Context;
use crate::objective::{Choices, Precision, Warm};
use crate::optim::{Lbfgs, norm, norm_inf};
use design::Design;
use fit::Likelihood;
use metric::Metric;
use select::{Folds, best_of, chosen, next_penalty, penalty_without_folds};

/// Steps by default, those of the comparison among them.
const STEPS: u64 = 600;
/// Steps after which plans start afresh: what a checkpoint needs to repeat.
const REFRESH: u64 = 10;
/// A gain in log-likelihood, of all decisions and over as many steps, that is not worth more of them.
const FLAT: f64 = 1e-3;
/// Steps with rough plans that come before the others, and the gradient at which these end.
const FIRST_STEPS: usize = 30;
const FIRST_TOLERANCE: f64 = 1e-2;
/// Tolerances below which plans are computed as exactly as they can be.
const EXACT: f64 = 1e-2;
/// Demonstrations without which pieces of them are compared, and pieces that a path is cut into where there are few of these too.
const FEWEST_COMPARED: usize = 3;
const PIECES: usize = 10;
/// Demonstrations at most that the units of a network are chosen by.
const MOST_GROWN_FROM: usize = 400;
/// Where rewards are so many times longer and the demonstrations no less likely, nothing but the penalty keeps them from growing.
const LONGER: f64 = 8.0;

/// Which form f has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormChoice {
    /// Linear, until another is better by two standard errors on demonstrations that are left out.
    #[default]
    Auto,
    /// One reward for everybody.
    Constant,
    /// A linear function of the context.
    Linear,
    /// A network of one hidden layer.
    Network,
}

impl From<Form> for FormChoice {
    fn from(form: Form) -> Self {
        match form {
            Form::Constant => FormChoice::Constant,
            Form::Linear => FormChoice::Linear,
            Form::Network => FormChoice::Network,
        }
    }
}

/// Settings of the choice model; none needs to be set.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// What the reward may depend on.
    pub mapping: FormChoice,
    /// λ, for parameters in units of the logits of choices; chosen by held-out likelihood by default. 0 for plain maximum likelihood.
    pub penalty: Option<f64>,
    /// ε, the probability of acting at random; estimated by default. 0 for none.
    pub lapses: Option<f64>,
    /// Parts that demonstrations are divided into, each left out once.
    pub folds: usize,
    /// How far from the optimum the fit may end, in standard errors of its parameters.
    pub tolerance: f64,
    /// Which standard errors of the weights are computed at the end.
    pub standard_errors: ErrorKind,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            mapping: FormChoice::Auto,
            penalty: None,
            lapses: None,
            folds: 5,
            tolerance: 0.03,
            standard_errors: ErrorKind::None,
        }
    }
}

impl Choice {
    fn check(&self) -> Result<()> {
        check_positive("tolerance", self.tolerance)?;
        let refuse = |name, value: f64, reason| Err(Error::InvalidSetting { name, value: value.to_string(), reason });
        match (self.penalty, self.lapses) {
            (Some(penalty), _) if !(penalty >= 0.0 && penalty.is_finite()) => {
                refuse("penalty", penalty, "expected a number that is not negative")
            }
            (_, Some(lapses)) if !(0.0..1.0).contains(&lapses) => {
                refuse("lapses", lapses, "expected a probability below 1")
            }
            _ if self.folds < 3 => refuse("folds", self.folds as f64, "expected at least 3"),
            _ => Ok(()),
        }
    }

    fn likelihood<'f>(
        &self,
        live: &'f Live,
        design: &'f Design,
        fitted: Fitted,
        all: &'f [usize],
        contexts: &'f [&'f Context],
    ) -> Likelihood<'f> {
        Likelihood {
            choices: &live.choices,
            design,
            contexts,
            form: fitted.form,
            penalty: fitted.penalty,
            lapses: fitted.lapses,
            indices: all,
            precision: if self.tolerance < EXACT { Precision::Exact } else { Precision::Full },
            warm: live.warm.as_ref(),
        }
    }

    /// The next comparison, or nothing where the choice can be made.
    fn next(&self, state: &State) -> Option<(Form, f64)> {
        let folds = state.folds.as_ref()?;
        let tried = |form: Form| state.candidates.iter().filter(move |candidate| candidate.form == form);
        let path = match self.mapping {
            FormChoice::Constant => Form::Constant,
            FormChoice::Network => Form::Network,
            FormChoice::Auto | FormChoice::Linear if !state.design.contexts_differ() => Form::Constant,
            FormChoice::Auto | FormChoice::Linear => Form::Linear,
        };
        match self.penalty {
            Some(penalty) if tried(path).next().is_none() => return Some((path, penalty)),
            Some(_) => {}
            None => {
                if let Some(penalty) = next_penalty(&state.candidates, path, state.noisy) {
                    return Some((path, penalty));
                }
            }
        }
        if self.mapping != FormChoice::Auto {
            return None;
        }
        let penalty = best_of(&state.candidates, path)?.penalty;
        let network = state.design.bends() && folds.bear_network();
        let others = [(Form::Network, path > Form::Constant && network), (Form::Constant, path > Form::Constant)];
        let missing = others.into_iter().find(|(form, wanted)| *wanted && tried(*form).next().is_none());
        missing.map(|(form, _)| (form, penalty))
    }

    /// What is fitted on all demonstrations once nothing is left to compare.
    fn chosen(&self, state: &State) -> Fitted {
        let best = match self.mapping {
            FormChoice::Auto => chosen(&state.candidates, state.design.asked_for()),
            _ => state.candidates.first().and_then(|first| best_of(&state.candidates, first.form)),
        };
        let form = match (best, self.mapping) {
            (Some(best), _) => best.form,
            (None, FormChoice::Constant) => Form::Constant,
            (None, FormChoice::Network) => Form::Network,
            (None, _) if !state.design.contexts_differ() => Form::Constant,
            (None, _) => Form::Linear,
        };
        let penalty = self.penalty.or(best.map(|best| best.penalty)).unwrap_or(penalty_without_folds(state.noisy));
        Fitted { form, penalty, lapses: state.lapses }
    }

    /// The units of the network, unless they were chosen: those that a linear fit with this penalty asks for.
    fn grow(&self, state: &mut State, penalty: f64, all: &[usize], contexts: &[&Context]) -> Result<()> {
        let Some(live) = state.live.as_ref().filter(|_| !state.design.has_grown()) else { return Ok(()) };
        let fitted = Fitted { form: Form::Linear, penalty, lapses: state.lapses };
        let n = all.len().min(MOST_GROWN_FROM);
        let some: Vec<usize> = (0..n).map(|at| all[at * all.len() / n]).collect();
        let precision = if state.noisy { Precision::Rough } else { Precision::Full };
        let linear = Likelihood { precision, ..self.likelihood(live, &state.design, fitted, &some, contexts) };
        let compared = state.candidates.iter_mut().find(|own| own.form == Form::Linear && own.penalty == penalty);
        let end = match &compared {
            Some(own) => linear.minimise(&own.start, FIRST_STEPS, FIRST_TOLERANCE)?,
            None => linear.minimise_from_nothing(FIRST_STEPS, FIRST_TOLERANCE)?,
        };
        let grown = bends::grow(&linear, &end, FIRST_STEPS, FIRST_TOLERANCE)?;
        // Nearer to where a linear fit will end than what the folds had.
        if let Some(own) = compared {
            own.start = end;
        }
        state.design = grown;
        Ok(())
    }

    /// What steps need that no checkpoint keeps, made anew; a fit under way is repeated from where plans last started afresh.
    fn wake(&self, state: &mut State, problem: &Problem<'_>) -> Result<()> {
        if state.live.is_some() {
            return Ok(());
        }
        let choices = Choices::new(problem.model(), problem.data())?;
        let warm = choices.warm();
        let pieces = match pieces_of(problem)? {
            Some(pieces) if state.folds.is_some() && state.fitted.is_none() => {
                Some((Choices::new(problem.model(), &pieces)?, pieces))
            }
            _ => None,
        };
        let optimiser = state.kept.as_ref().map(|kept| kept.optimiser.clone());
        state.live = Some(Live { choices, pieces, warm, optimiser });
        for _ in 0..state.since {
            self.advance(state, problem)?;
        }
        Ok(())
    }

    /// One step of L-BFGS; whether there was one to take.
    fn advance(&self, state: &mut State, problem: &Problem<'_>) -> Result<Option<(f64, fit::Sums)>> {
        let (Some(mut live), Some(fitted), Some(kept)) = (state.live.take(), state.fitted, &state.kept) else {
            return Ok(None);
        };
        let (all, mut taken) = (problem.data().all(), None);
        if let Some(mut optimiser) = live.optimiser.take() {
            let contexts = problem.data().inputs(&all);
            let likelihood = self.likelihood(&live, &state.design, fitted, &all, &contexts);
            let accepted = optimiser.step(|coordinates| likelihood.evaluate_at(&kept.metric, coordinates))?;
            taken = accepted.map(|accepted| (accepted.length, accepted.remark));
            live.optimiser = Some(optimiser);
        }
        state.live = Some(live);
        Ok(taken)
    }
}

/// What is fitted on all demonstrations.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fitted {
    form: Form,
    penalty: f64,
    lapses: Option<f64>,
}

/// What the learner keeps.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    design: Design,
    /// ε where it is fixed.
    lapses: Option<f64>,
    noisy: bool,
    /// Nothing where there are too few demonstrations to leave some out.
    folds: Option<Folds>,
    candidates: Vec<Candidate>,
    /// What was chosen, once it was.
    fitted: Option<Fitted>,
    /// The fit when plans last started afresh, and steps since.
    kept: Option<Kept>,
    since: u64,
    /// The fit as it stands: the point, how far it is from the optimum in standard errors, likelihood and agreement per decision, and
    /// the effective number of decisions.
    point: Vec<f64>,
    distance: f64,
    log_likelihood: f64,
    agreement: f64,
    effective: f64,
    /// Features that demonstrations are no less likely without.
    #[serde(default)]
    can_be_left_out: Vec<usize>,
    ended: Option<Status>,
    #[serde(skip)]
    live: Option<Live>,
}

/// A fit and the coordinates that it is in.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    metric: Metric,
    optimiser: Lbfgs,
}

/// What steps need and can be made anew.
struct Live {
    choices: Choices,
    /// What is compared, where that is not the demonstrations.
    pieces: Option<(Choices, Demonstrations)>,
    warm: Option<Warm>,
    optimiser: Option<Lbfgs>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("optimiser", &self.optimiser).finish_non_exhaustive()
    }
}

/// Pieces of the demonstrations, where these are too few to leave some out and known by their paths.
fn pieces_of(problem: &Problem<'_>) -> Result<Option<Demonstrations>> {
    let data = problem.data();
    match data.len() < FEWEST_COMPARED && data.prefer_actions() {
        true => data.in_pieces(problem.model(), PIECES).map(Some),
        false => Ok(None),
    }
}

impl Learner for Choice {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        self.check()?;
        if from.initial.is_some() {
            let reason = "the choice model starts from no reward at all: where it ends does not depend on the start";
            return Err(Error::InvalidSetting { name: "initial", value: "a mapping".into(), reason });
        }
        let data = problem.data();
        let choices = Choices::new(problem.model(), data)?;
        let all = data.all();
        let design = Design::new(problem.model(), &data.inputs(&all), &choices, from.seed)?;
        // Feature expectations have no lapses: they are what an expert's own policy adds up to.
        let lapses = if choices.from_actions() { self.lapses } else { Some(0.0) };
        let settled = self.penalty.is_some() && self.mapping != FormChoice::Auto;
        let folds = if settled {
            None
        } else {
            let pieces = pieces_of(problem)?;
            let n = pieces.as_ref().unwrap_or(data).len();
            Folds::new(n, pieces.is_some(), self.folds, choices.is_noisy(), from.seed)
        };
        Ok(State {
            design,
            lapses,
            noisy: choices.is_noisy(),
            folds,
            candidates: Vec::new(),
            fitted: None,
            kept: None,
            since: 0,
            point: Vec::new(),
            distance: f64::MAX,
            log_likelihood: 0.0,
            agreement: 0.0,
            effective: 0.0,
            can_be_left_out: Vec::new(),
            ended: None,
            live: None,
        })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        self.wake(state, problem)?;
        let all = problem.data().all();
        let contexts = problem.data().inputs(&all);
        let mut record = Record { demonstrations: problem.len() as u64, ..Record::default() };
        if state.fitted.is_none() {
            if let Some((form, penalty)) = self.next(state) {
                if form == Form::Network {
                    self.grow(state, penalty, &all, &contexts)?;
                }
                let (Some(folds), Some(live)) = (&mut state.folds, &state.live) else { return Ok(record.into()) };
                let (compared, contexts) = match &live.pieces {
                    Some((choices, pieces)) => (choices, pieces.inputs(&pieces.all())),
                    None => (&live.choices, contexts),
                };
                let candidate = folds.compare(compared, &state.design, &contexts, form, penalty, state.lapses)?;
                problem.planner().count_plans((folds.n() * folds.len()) as u64);
                state.candidates.push(candidate);
                return Ok(record.into());
            }
            let fitted = self.chosen(state);
            if fitted.form == Form::Network {
                self.grow(state, fitted.penalty, &all, &contexts)?;
            }
            let Some(mut live) = state.live.take() else { return Ok(record.into()) };
            let likelihood = self.likelihood(&live, &state.design, fitted, &all, &contexts);
            // From where the folds ended: near where the fit will.
            let compared = best_of(&state.candidates, fitted.form).map(|best| best.start.clone());
            let start = compared.filter(|own| own.len() == likelihood.n_parameters());
            // The way there needs no precision.
            let precision = if state.noisy { Precision::Rough } else { Precision::Full };
            let rough = Likelihood { precision, ..likelihood };
            let start = match start {
                Some(start) => rough.minimise(&start, FIRST_STEPS, FIRST_TOLERANCE)?,
                None => rough.minimise_from_nothing(FIRST_STEPS, FIRST_TOLERANCE)?,
            };
            let seen = rough.surroundings(start, FIRST_STEPS, FIRST_TOLERANCE)?;
            let (metric, optimiser) = likelihood.from(&seen.point)?;
            state.can_be_left_out = seen.can_be_left_out;
            (state.fitted, state.kept, state.since) =
                (Some(fitted), Some(Kept { metric, optimiser: optimiser.clone() }), 0);
            live.warm = live.choices.warm();
            live.optimiser = Some(optimiser);
            state.live = Some(live);
        }
        let taken = self.advance(state, problem)?;
        problem.planner().count_plans(problem.len() as u64);
        let (Some(live), Some(fitted), Some(kept)) = (&mut state.live, state.fitted, &mut state.kept) else {
            return Ok(record.into());
        };
        let Some(optimiser) = &live.optimiser else { return Ok(record.into()) };
        let decisions: f64 = all.iter().map(|&i| live.choices.decisions(i)).sum::<f64>().max(1.0);
        state.point = kept.metric.point(&optimiser.point);
        state.distance = norm(&optimiser.gradient) * decisions.sqrt();
        record.batch_loss = Some(optimiser.value);
        if let Some((length, sums)) = taken {
            problem.planner().count_sweeps(sums.sweeps);
            state.log_likelihood = -sums.negative_log_likelihood / decisions;
            state.agreement = sums.agreement / decisions;
            state.effective = sums.effective;
            record.step_size = Some(length);
        }
        record.log_likelihood = Some(state.log_likelihood);
        record.training_accuracy = live.choices.from_actions().then_some(state.agreement);
        state.since += 1;
        let mut flat = false;
        if state.since >= REFRESH {
            flat = (kept.optimiser.value - optimiser.value) * decisions < FLAT;
            live.warm = live.choices.warm();
            let likelihood = self.likelihood(live, &state.design, fitted, &all, &contexts);
            let (metric, optimiser) = likelihood.refreshed(&kept.metric, optimiser)?;
            live.optimiser = Some(optimiser.clone());
            (*kept, state.since) = (Kept { metric, optimiser }, 0);
        }
        let converged = state.distance <= self.tolerance || flat;
        if converged || taken.is_none() {
            state.ended = Some(self.end(state, problem, converged)?);
        }
        Ok(Step { record, finished: state.ended.is_some() })
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        let Ok(pieces) = pieces_of(problem) else { return false };
        let n = pieces.as_ref().unwrap_or(problem.data()).len();
        state.folds.as_ref().is_none_or(|folds| folds.fits(n))
            && state.design.fits(problem.data().dimension(), problem.n_features())
            && state.can_be_left_out.iter().all(|&feature| feature < problem.n_features())
            && state.fitted.is_none_or(|fitted| {
                let rewards = state.design.n_inputs(fitted.form) * problem.n_features();
                let own = rewards + usize::from(fitted.lapses.is_none());
                state.kept.as_ref().is_some_and(|kept| {
                    kept.optimiser.fits(own)
                        && kept.metric.fits(state.design.n_inputs(fitted.form), problem.n_features())
                }) && [0, own].contains(&state.point.len())
            })
    }

    fn agent(&self, state: &State, problem: &Problem<'_>) -> Result<Agent> {
        let fitted = state.fitted.filter(|_| !state.point.is_empty());
        match (fitted, state.candidates.last()) {
            (Some(fitted), _) => state.design.agent(fitted.form, &state.point),
            // Before the fit on all demonstrations: what the folds of the last comparison agree on.
            (None, Some(candidate)) => state.design.agent(candidate.form, &candidate.start),
            _ => state.design.agent(Form::Constant, &vec![0.0; problem.n_features()]),
        }
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(STEPS)
    }

    fn steps_per_pass(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(1)
    }

    fn demonstrations_per_step(&self, problem: &Problem<'_>) -> u64 {
        problem.len() as u64
    }

    fn recorded_span(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(STEPS)
    }

    fn has_loss(&self) -> bool {
        true
    }

    fn loss(&self, state: &State, problem: &Problem<'_>) -> Result<Option<f64>> {
        match self.agent(state, problem)? {
            Agent::Planned(mapping) => problem.unit_loss_of(&mapping),
            Agent::Neural(mapping) => problem.unit_loss_of(&mapping),
            _ => Ok(None),
        }
    }

    /// −log-likelihood of a validation decision.
    fn validation_loss(&self, state: &State, _problem: &Problem<'_>, validation: &Problem<'_>) -> Result<Option<f64>> {
        let Some(fitted) = state.fitted.filter(|_| !state.point.is_empty()) else { return Ok(None) };
        let data = validation.data();
        let live = Live { choices: Choices::new(validation.model(), data)?, pieces: None, warm: None, optimiser: None };
        let (all, contexts) = (data.all(), data.inputs(&data.all()));
        let likelihood = self.likelihood(&live, &state.design, fitted, &all, &contexts);
        let sum: f64 = likelihood.terms(&state.point, &all)?.iter().map(|term| term.value).sum();
        Ok(Some(sum / likelihood.decisions()))
    }

    fn may_stop(&self, state: &State) -> bool {
        state.fitted.is_some()
    }

    fn end_status(&self, state: &State) -> Status {
        state.ended.unwrap_or(Status::Finished)
    }

    fn explained(&self, state: &State, problem: &Problem<'_>) -> Result<Option<Explained>> {
        let Some(fitted) = state.fitted.filter(|_| !state.point.is_empty()) else { return Ok(None) };
        let choices = Choices::new(problem.model(), problem.data())?;
        let all = problem.data().all();
        let decisions = all.iter().map(|&i| choices.decisions(i)).sum();
        let contexts = problem.data().inputs(&all);
        let live = Live { choices, pieces: None, warm: None, optimiser: None };
        let likelihood = self.likelihood(&live, &state.design, fitted, &all, &contexts);
        let agent = self.agent(state, problem)?;
        let lengths =
            agent.reward_mapping()?.weights_of_all(&contexts.iter().map(|&c| c.clone()).collect::<Vec<_>>())?;
        let lengths: Vec<f64> = lengths.chunks_exact(problem.n_features()).map(norm).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        Ok(Some(Explained {
            form: fitted.form,
            penalty: fitted.penalty,
            log_likelihood: state.log_likelihood,
            accuracy: live.choices.from_actions().then_some(state.agreement),
            lapses: live.choices.from_actions().then(|| likelihood.lapses_at(&state.point)),
            temperature: (mean > 0.0).then(|| 1.0 / mean).filter(|t| t.is_finite()),
            decisions,
            effective_decisions: live.choices.from_actions().then_some(state.effective),
            left_out: live.choices.left_out(),
            parameters: likelihood.n_parameters(),
            distance: state.distance,
            same_columns: state.design.constant_columns(),
            can_be_left_out: state.can_be_left_out.clone(),
            standard_errors: likelihood.standard_errors(&state.point, self.standard_errors)?,
            candidates: state.candidates.iter().map(|own| own.told(&state.candidates)).collect(),
        }))
    }

    fn guarantee(&self, state: &State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        Ok((None, Guarantee::none("likelihood").with("distance", state.distance)))
    }
}

impl Choice {
    /// Why a fit is over.
    fn end(&self, state: &State, problem: &Problem<'_>, converged: bool) -> Result<Status> {
        let (Some(live), Some(fitted)) = (&state.live, state.fitted) else { return Ok(Status::Finished) };
        let all = problem.data().all();
        let contexts = problem.data().inputs(&all);
        let likelihood = self.likelihood(live, &state.design, fitted, &all, &contexts);
        if norm_inf(likelihood.rewards(&state.point)) <= 1e-6 {
            return Ok(Status::NotIdentified);
        }
        let longer: Vec<f64> = likelihood.rewards(&state.point).iter().map(|p| LONGER * p).collect();
        let tail = &state.point[longer.len()..];
        let longer = [&longer[..], tail].concat();
        let cold = Likelihood { warm: None, ..likelihood };
        let sum: f64 = cold.terms(&longer, &all)?.iter().map(|term| term.value).sum();
        Ok(match -sum / cold.decisions() >= state.log_likelihood {
            true => Status::Separable,
            false if converged => Status::Converged,
            false => Status::Finished,
        })
    }
}

/// How well demonstrated choices are explained, and by what.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Explained {
    /// What f depends on.
    pub form: Form,
    /// λ.
    pub penalty: f64,
    /// Mean log-likelihood of a demonstrated decision.
    pub log_likelihood: f64,
    /// Share of the decisions for which the likeliest action was taken; from trajectories only.
    pub accuracy: Option<f64>,
    /// ε; from trajectories only.
    pub lapses: Option<f64>,
    /// The temperature of choices for rewards of length one: the inverse of the mean length of f(c).
    pub temperature: Option<f64>,
    /// Decisions among known actions in states that can be left.
    pub decisions: f64,
    /// How many of them were open: each counts as (1 − Σ π²)/(1 − 1/|A(s)|), nothing where the model takes one action for certain.
    #[serde(default)]
    pub effective_decisions: Option<f64>,
    /// Demonstrated actions that are not known, and were left out.
    pub left_out: f64,
    /// Number of parameters.
    pub parameters: usize,
    /// How far the fit is from its optimum, in standard errors of its parameters.
    pub distance: f64,
    /// Columns of the contexts that are the same in all demonstrations, so that nothing is known of their effect.
    pub same_columns: usize,
    /// Features without whose weights, each by itself, the demonstrations are no less likely than luck would explain: the signs of these
    /// weights are not to be trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub can_be_left_out: Vec<usize>,
    /// Standard errors of the weights, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_errors: Option<StandardErrors>,
    /// What was compared on demonstrations that were left out, in the order of the comparison.
    pub candidates: Vec<Candidate>,
}

impl Explained {
    /// The best of what was compared for a form.
    pub fn best_of(&self, form: Form) -> Option<&Candidate> {
        self.candidates.iter().find(|own| own.form == form && own.stands)
    }

    /// What was fitted, on demonstrations that were left out.
    pub fn held_out(&self) -> Option<&Candidate> {
        self.best_of(self.form)
    }
}
