//! What can be said of demonstrations before anything is learned from them.
//!
//! | topic | finding | level |
//! |---|---|---|
//! | support | a feature that is never shown or that no policy changes, a context field that never varies | warning |
//! | admissibility | a state or an action that the model does not have there | error, cannot be fitted |
//! | | an action that is admissible there, but not known | warning |
//! | transitions | a step with probability zero, a state that no policy reaches | warning |
//! | expectations | exact μ* outside what any policy can reach | error |
//! | | estimated μ* outside by more than three standard errors and the bias | warning |
//! | repeats | the same demonstration twice; the same context with different behaviour, in one demonstration or in two | warning |
//! | least loss | no mapping that was looked at explains them; they are hardly better than chance; paths are short for the discount | warning |
//!
//! Cost: 2k plans per kernel for the expectations, and a plan per demonstration and step for the least loss.

use super::bounds::Bounds;
use super::least_loss::LeastLoss;
use super::progress::Listener;
use super::repeats::repeats;
use super::support::{Support, never_shown, paths, reach};
use crate::demos::{Demonstration, Estimate, Estimates, Estimator, Evidence, Origin, Reference, Train};
use crate::error::{Error, Result, check_length};
use crate::learn::Problem;
use crate::model::{ActionId, Cmdp, StateId};
use rayon::prelude::*;
use std::fmt;

/// Expectations that differ by less than this share of the largest possible one are the same; files keep few digits.
const SAME: f64 = 1e-6;
/// Standard errors after which an estimate is no longer outside by chance.
const STANDARD_ERRORS: f64 = 3.0;

/// Settings of the check.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckSettings {
    /// Contexts that differ by no more than this in every number are the same.
    pub near: f64,
    /// Plans for the bounds on feature expectations; cruder ones are used where more are needed.
    pub max_plans: usize,
    /// Steps towards the least loss, each of a plan per demonstration; 0 leaves the question open.
    pub max_steps: u64,
    /// A least loss above this share of what the experts gain over chance is worth a warning.
    pub unexplained: f64,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self { near: 1e-6, max_plans: 20_000, max_steps: 200, unexplained: 0.05 }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Everything that is wrong or worth knowing, in the order of the topics.
    pub findings: Vec<Finding>,
    /// Where the demonstrations are.
    pub support: Support,
    /// What any policy can reach; nothing where the demonstrations cannot be fitted.
    pub bounds: Option<Bounds>,
    /// The smallest loss that a mapping can reach, where it was asked for.
    pub least_loss: Option<LeastLoss>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing to be said.
    Fine,
    /// Worth knowing; what is learned may be less than hoped.
    Warning,
    /// Model and demonstrations contradict each other.
    Error,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What the demonstrations show.
    Support,
    /// States and actions of the model.
    Admissibility,
    /// Transitions that the model knows.
    Transitions,
    /// Feature expectations within their bounds.
    Expectations,
    /// Duplicates and contradictions.
    Repeats,
    /// What the best mapping leaves unexplained.
    LeastLoss,
}

impl Topic {
    /// All of them, in the order of a report.
    pub const ALL: [Topic; 6] = [
        Topic::Admissibility,
        Topic::Transitions,
        Topic::Support,
        Topic::Expectations,
        Topic::Repeats,
        Topic::LeastLoss,
    ];
}

/// One thing that was found. Demonstrations, steps, features and fields count from zero.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what their names say
pub enum Finding {
    /// A trajectory visits a state that the model does not have.
    StateDoesNotExist { demonstration: usize, state: StateId },
    /// A trajectory takes an action that may not be taken there.
    NotAdmissible { demonstration: usize, step: usize, state: StateId, action: ActionId },
    /// A trajectory takes an action that may be taken there, but that the model does not know.
    NotKnown { demonstration: usize, step: usize, state: StateId, action: ActionId },
    /// The demonstrations cannot be used with this model, for another reason.
    NotFittable { reason: String },
    /// A step that has probability zero in the process of its context.
    ImpossibleTransition { demonstration: usize, step: usize, state: StateId, action: ActionId, next: StateId },
    /// A state that no policy reaches from where the model starts.
    Unreachable { demonstration: usize, step: usize, state: StateId },
    /// No expert ever meets the feature, although some policy does.
    FeatureNeverShown { feature: usize },
    /// No policy changes μ_j: nothing can be learned about its weight.
    FeatureFixed { feature: usize },
    /// A context field has the same value in every demonstration.
    FieldFixed { field: usize, value: f64 },
    /// μ*_j is not between what any policy can reach.
    OutOfBounds {
        demonstration: usize,
        feature: usize,
        value: f64,
        least: f64,
        greatest: f64,
        /// Of an estimate; none where the expectations were given.
        standard_error: Option<f64>,
    },
    /// A demonstration with the context, start and evidence of an earlier one.
    Duplicate { first: usize, second: usize },
    /// A demonstration with the context of an earlier one and another behaviour: in a state, or in the feature expectations.
    Contradiction { first: usize, second: usize, state: Option<StateId> },
    /// One demonstration takes different actions in the same state: by choice among equals, by lapses, or for a reason that the model
    /// does not have.
    Undecided { demonstration: usize, state: StateId },
    /// No mapping explains the demonstrations of those under which the experts gain at least 1/`radius` of what they could under a mapping of
    /// that length: the least loss there is at least `lower_bound` of their gain over chance, what lies beyond the ends of paths allowed for.
    Unexplained { lower_bound: f64, reached: f64, radius: f64 },
    /// The paths are short for the discount: what lies beyond their ends can be worth `unseen` times what the experts are seen to gain over chance.
    PathsTooShort { unseen: f64 },
    /// The experts' gain over chance is zero, or within its own noise of zero.
    NoAdvantage { advantage: f64, noise: f64 },
}

impl Finding {
    /// How bad it is.
    pub fn level(&self) -> Level {
        match self {
            Finding::StateDoesNotExist { .. } | Finding::NotAdmissible { .. } | Finding::NotFittable { .. } => {
                Level::Error
            }
            Finding::OutOfBounds { standard_error: None, .. } => Level::Error,
            _ => Level::Warning,
        }
    }

    /// What it is about.
    pub fn topic(&self) -> Topic {
        match self {
            Finding::StateDoesNotExist { .. }
            | Finding::NotAdmissible { .. }
            | Finding::NotKnown { .. }
            | Finding::NotFittable { .. } => Topic::Admissibility,
            Finding::ImpossibleTransition { .. } | Finding::Unreachable { .. } => Topic::Transitions,
            Finding::FeatureNeverShown { .. } | Finding::FeatureFixed { .. } | Finding::FieldFixed { .. } => {
                Topic::Support
            }
            Finding::OutOfBounds { .. } => Topic::Expectations,
            Finding::Duplicate { .. } | Finding::Contradiction { .. } | Finding::Undecided { .. } => Topic::Repeats,
            Finding::Unexplained { .. } | Finding::NoAdvantage { .. } | Finding::PathsTooShort { .. } => {
                Topic::LeastLoss
            }
        }
    }

    /// Whether nothing can be learned while it is so.
    pub fn prevents_fit(&self) -> bool {
        self.topic() == Topic::Admissibility && self.level() == Level::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::StateDoesNotExist { demonstration, state } => {
                write!(f, "demonstration {demonstration} visits state {}, which the model does not have", state.0)
            }
            Finding::NotAdmissible { demonstration, step, state, action } => write!(
                f,
                "demonstration {demonstration}, step {step}: action {} is not admissible in state {}",
                action.0, state.0
            ),
            Finding::NotKnown { demonstration, step, state, action } => write!(
                f,
                "demonstration {demonstration}, step {step}: action {} in state {} is not known to the model: what is said to \
                 follow it stands for anything",
                action.0, state.0
            ),
            Finding::NotFittable { reason } => f.write_str(reason),
            Finding::ImpossibleTransition { demonstration, step, state, action, next } => write!(
                f,
                "demonstration {demonstration}, step {step}: action {} in state {} leads to state {} with probability zero",
                action.0, state.0, next.0
            ),
            Finding::Unreachable { demonstration, step, state } => write!(
                f,
                "demonstration {demonstration}, step {step}: no policy reaches state {} from where the model starts",
                state.0
            ),
            Finding::FeatureNeverShown { feature } => {
                write!(f, "no expert meets feature {feature}: only a limit on one side of its weight can be learned")
            }
            Finding::FeatureFixed { feature } => {
                write!(f, "no policy changes feature {feature}: nothing can be learned about its weight")
            }
            Finding::FieldFixed { field, value } => {
                write!(f, "context field {field} is {value} in every demonstration")
            }
            Finding::OutOfBounds { demonstration, feature, value, least, greatest, standard_error } => {
                let noise = standard_error.map(|error| format!(" (standard error {error:.2e})")).unwrap_or_default();
                write!(
                    f,
                    "demonstration {demonstration}: feature {feature} has expectation {value:.6}{noise}, but policies \
                     reach {least:.6} to {greatest:.6}"
                )
            }
            Finding::Duplicate { first, second } => write!(f, "demonstration {second} is demonstration {first} again"),
            Finding::Contradiction { first, second, state: Some(state) } => write!(
                f,
                "demonstrations {first} and {second} have the same context and act differently in state {}",
                state.0
            ),
            Finding::Contradiction { first, second, state: None } => {
                write!(f, "demonstrations {first} and {second} have the same context and different expectations")
            }
            Finding::Undecided { demonstration, state } => {
                write!(f, "demonstration {demonstration} takes different actions in state {}", state.0)
            }
            Finding::Unexplained { lower_bound, reached, radius } => write!(
                f,
                "no mapping explains the experts, of those under which they gain at least {:.0} % of what they could under a \
                 mapping of that length: they miss at least {:.1} % (best found {:.1} %) of what they gain over chance",
                100.0 / radius,
                100.0 * lower_bound,
                100.0 * reached
            ),
            Finding::PathsTooShort { unseen } => {
                f.write_str("the paths are short for the discount: what lies beyond their ends can be worth ")?;
                match unseen.is_finite() {
                    true => write!(f, "{unseen:.1} times ")?,
                    false => f.write_str("any multiple of ")?,
                }
                f.write_str("what the experts are seen to gain over chance, so that nothing is certain about the loss of a mapping")
            }
            Finding::NoAdvantage { advantage, noise } => write!(
                f,
                "the experts' advantage over chance, {advantage:.3e}, is within its noise of zero ({noise:.3e})"
            ),
        }
    }
}

impl Check {
    /// Whether a learner can be run on the demonstrations at all.
    pub fn can_be_fitted(&self) -> bool {
        !self.findings.iter().any(Finding::prevents_fit)
    }

    /// The findings on a topic.
    pub fn about(&self, topic: Topic) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.topic() == topic)
    }

    /// The worst level on a topic.
    pub fn level(&self, topic: Topic) -> Level {
        self.about(topic).map(Finding::level).max().unwrap_or(Level::Fine)
    }
}

/// Looks at demonstrations before a fit.
pub fn check(
    model: &Cmdp,
    demonstrations: &[Demonstration],
    estimator: &Estimator,
    settings: &CheckSettings,
    listener: Listener<'_>,
) -> Result<Check> {
    let mut findings = along_paths(model, demonstrations);
    let from_model: Vec<bool> = model.initial().iter().map(|&p| p > 0.0).collect();
    unreachable(demonstrations, &reach(model, from_model), &mut findings);
    let support = Support::new(model, demonstrations);
    let without_numbers = |findings, support| Check { findings, support, bounds: None, least_loss: None };
    if findings.iter().any(Finding::prevents_fit) {
        return Ok(without_numbers(findings, support));
    }
    let estimates = Estimates::new(model, estimator.clone(), Reference::Uniform)?;
    let estimated: Result<Vec<Estimate>> = demonstrations.par_iter().map(|demo| estimates.estimate(demo)).collect();
    let problem =
        estimated.and_then(|each| Ok((each, Problem::new(model, &Train::new(demonstrations.to_vec()), estimator)?)));
    let (estimated, problem) = match problem {
        Ok(found) => found,
        Err(error) => {
            findings.push(Finding::NotFittable { reason: error.to_string() });
            return Ok(without_numbers(findings, support));
        }
    };
    let scale = model.features().max_abs() * problem.horizon()?;
    let bounds = Bounds::of(&problem, settings.max_plans)?;
    unlearnable(&problem, &bounds, SAME * scale, &mut findings)?;
    out_of_bounds(demonstrations, &estimated, &bounds, SAME * scale, &mut findings)?;
    findings.extend(repeats(demonstrations, settings.near, SAME * scale));
    let least_loss = match settings.max_steps {
        0 => None,
        steps => match LeastLoss::of(&problem, steps, listener) {
            Ok(least) => Some(least),
            // What the bundle method cannot be normalised by: experts exactly as good as chance.
            Err(Error::InvalidSetting { name: "demonstrations", .. }) => {
                findings.push(Finding::NoAdvantage { advantage: 0.0, noise: 0.0 });
                None
            }
            Err(error) => return Err(error),
        },
    };
    if let Some(least) = &least_loss {
        if least.is_noise() {
            findings.push(Finding::NoAdvantage { advantage: least.advantage, noise: least.advantage_noise });
        }
        let (lower_bound, &LeastLoss { reached, radius, unseen, .. }) = (least.lower_bound_with_unseen(), least);
        if least.paths_are_short() {
            findings.push(Finding::PathsTooShort { unseen });
        } else if lower_bound > settings.unexplained {
            findings.push(Finding::Unexplained { lower_bound, reached, radius });
        }
    }
    Ok(Check { findings, support, bounds: Some(bounds), least_loss })
}

/// Steps that the model does not have: the first of each kind in every demonstration.
fn along_paths(model: &Cmdp, demonstrations: &[Demonstration]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let pairs = model.pairs();
    for (i, demonstration) in demonstrations.iter().enumerate() {
        let starts = match demonstration.origin() {
            Origin::Model => &[][..],
            Origin::States(states) => states,
        };
        let visits = paths(demonstration).into_iter().flatten().flat_map(|path| &path.states);
        if let Some(&state) = starts.iter().chain(visits).find(|state| state.index() >= model.n_states()) {
            findings.push(Finding::StateDoesNotExist { demonstration: i, state });
            continue;
        }
        let paths = match demonstration.evidence() {
            Evidence::Trajectories(paths) => paths,
            Evidence::FeatureExpectations(mu) => {
                if let Err(error) = check_length("feature expectations", model.n_features(), mu.len()) {
                    findings.push(Finding::NotFittable { reason: format!("demonstration {i}: {error}") });
                }
                continue;
            }
        };
        let mdp = match model.mdp(demonstration.context()) {
            Ok(mdp) => mdp,
            Err(error) => {
                findings.push(Finding::NotFittable { reason: format!("demonstration {i}: {error}") });
                continue;
            }
        };
        let steps = paths.iter().flat_map(|path| {
            let led = path.states.iter().zip(&path.actions).zip(path.states.iter().skip(1)).enumerate();
            led.map(|(step, ((&state, &action), &next))| (step, state, action, next))
        });
        let (mut impossible, mut unknown) = (None, None);
        for (step, state, action, next) in steps {
            let Some(pair) = pairs.find(state.index(), action.index()) else {
                findings.push(Finding::NotAdmissible { demonstration: i, step, state, action });
                break;
            };
            if !model.is_known(pair) && unknown.is_none() {
                unknown = Some(Finding::NotKnown { demonstration: i, step, state, action });
            }
            let probability = mdp.kernel().successors(pair).find(|entry| entry.0 == next.index()).map_or(0.0, |e| e.1);
            if probability == 0.0 && impossible.is_none() {
                impossible = Some(Finding::ImpossibleTransition { demonstration: i, step, state, action, next });
            }
        }
        findings.extend(unknown.into_iter().chain(impossible));
    }
    findings
}

/// The first state of every demonstration that cannot be reached.
fn unreachable(demonstrations: &[Demonstration], reachable: &[bool], findings: &mut Vec<Finding>) {
    for (i, demonstration) in demonstrations.iter().enumerate() {
        let visits = paths(demonstration).into_iter().flatten().flat_map(|path| path.states.iter().enumerate());
        let strange = |&(_, state): &(usize, &StateId)| reachable.get(state.index()) == Some(&false);
        if let Some((step, &state)) = visits.into_iter().find(strange) {
            findings.push(Finding::Unreachable { demonstration: i, step, state });
        }
    }
}

/// Features and context fields about which nothing, or little, can be learned.
fn unlearnable(problem: &Problem<'_>, bounds: &Bounds, tolerance: f64, findings: &mut Vec<Finding>) -> Result<()> {
    for (feature, never_shown) in never_shown(problem, tolerance)?.into_iter().enumerate() {
        if bounds.is_fixed(feature, tolerance) {
            findings.push(Finding::FeatureFixed { feature });
        } else if never_shown {
            findings.push(Finding::FeatureNeverShown { feature });
        }
    }
    for field in 0..problem.data().dimension() {
        let value = problem.context(0).values()[field];
        if problem.len() > 1 && (1..problem.len()).all(|i| problem.context(i).values()[field] == value) {
            findings.push(Finding::FieldFixed { field, value });
        }
    }
    Ok(())
}

fn out_of_bounds(
    demonstrations: &[Demonstration],
    estimated: &[Estimate],
    bounds: &Bounds,
    tolerance: f64,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    for (i, (demonstration, estimate)) in demonstrations.iter().zip(estimated).enumerate() {
        let exact = paths(demonstration).is_none();
        for (feature, &value) in estimate.feature_expectations.iter().enumerate() {
            let (least, greatest) = bounds.at(i, feature)?;
            let error = estimate.standard_error.as_ref().map(|errors| errors[feature]);
            let (allowed, standard_error) = match (exact, error) {
                (true, _) => (tolerance, None),
                (false, Some(error)) => (tolerance + estimate.bias_bound + STANDARD_ERRORS * error, Some(error)),
                // Of a single trajectory nobody knows how far off it is.
                (false, None) => continue,
            };
            if value < least - allowed || value > greatest + allowed {
                findings.push(Finding::OutOfBounds {
                    demonstration: i,
                    feature,
                    value,
                    least,
                    greatest,
                    standard_error,
                });
            }
        }
    }
    Ok(())
}
