//! Where experiments take place: a model with experts whose wishes are known.

use coirl::agent::Agent;
use coirl::contextual::plan_contexts;
use coirl::demos::{Demonstration, Train, Trajectory};
use coirl::domains::{Driving, Grid, Sepsis};
use coirl::mapping::{LinearMapping, RewardMapping};
use coirl::model::{Cmdp, Context, StateId};
use coirl::plan::{ManyOptions, Planner, Policy, evaluate};
use coirl::score::{Examination, Score};
use coirl::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Transitions of a demonstration that is a path.
const TRANSITIONS: usize = 40;

/// A model with experts of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The 3 × 4 grid, W* the identity.
    Grid,
    /// Driving with the W* of the online experiments, which has no negative entry.
    Driving,
    /// Driving with the W* of the interactive experiments.
    DrivingInteractive,
    /// The sepsis simulator with a linear W*.
    Sepsis,
    /// The sepsis simulator with experts who want one of two rewards, by age.
    SepsisThreshold,
}

/// What is seen of an expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Exact feature expectations.
    #[default]
    FeatureExpectations,
    /// One path of 40 transitions.
    Trajectory,
}

/// Somebody for whom an expert acts.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// The context.
    pub context: Context,
    /// Where it begins; by default, where the model begins.
    pub start: Option<StateId>,
}

/// A model with the wishes of its experts.
pub struct World {
    place: Place,
    model: Cmdp,
    truth: Truth,
}

/// What experts want.
enum Truth {
    Linear(LinearMapping),
    Other(Box<dyn RewardMapping>),
}

/// What learning is measured against: agents that do not learn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Yardsticks {
    /// One policy for the mean context: below it, telling contexts apart does harm.
    pub one_policy: Score,
    /// The last feature is all that is wanted; in the sepsis simulator that is survival.
    pub last_feature: Score,
    /// Any known action.
    pub random: Score,
}

impl World {
    /// The model of a place with its experts.
    pub fn new(place: Place) -> Result<Self> {
        let (model, truth) = match place {
            Place::Grid => {
                let model = Grid::default().build()?;
                let k = model.n_features();
                let identity = (0..k * k).map(|i| f64::from(u8::from(i % (k + 1) == 0))).collect();
                (model, Truth::Linear(LinearMapping::new(k, k, identity)?))
            }
            Place::Driving => (Driving::default().build()?, Truth::Linear(Driving::online_mapping())),
            Place::DrivingInteractive => (Driving::default().build()?, Truth::Linear(Driving::interactive_mapping())),
            Place::Sepsis => (Sepsis::default().build()?, Truth::Linear(Sepsis::linear_mapping())),
            Place::SepsisThreshold => {
                (Sepsis::default().build()?, Truth::Other(Box::new(Sepsis::threshold_mapping()?)))
            }
        };
        Ok(Self { place, model, truth })
    }

    /// This world with experts who want something else.
    pub fn with_truth(self, truth: LinearMapping) -> Result<Self> {
        for (what, expected, found) in [
            ("features of the truth", self.model.n_features(), truth.n_features()),
            ("contexts of the truth", self.truth().dimension(), truth.dimension()),
        ] {
            if expected != found {
                return Err(Error::shape(what, expected, found));
            }
        }
        Ok(Self { truth: Truth::Linear(truth), ..self })
    }

    /// The model.
    pub fn model(&self) -> &Cmdp {
        &self.model
    }

    /// What experts want.
    pub fn truth(&self) -> &dyn RewardMapping {
        match &self.truth {
            Truth::Linear(mapping) => mapping,
            Truth::Other(mapping) => mapping.as_ref(),
        }
    }

    /// What experts who can be asked want: a linear mapping.
    pub fn linear_truth(&self) -> Result<&LinearMapping> {
        match &self.truth {
            Truth::Linear(mapping) => Ok(mapping),
            Truth::Other(_) => Err(Error::Spec {
                place: "study.place".into(),
                reason: "experts without a linear mapping cannot be asked; choose a place where they have one".into(),
            }),
        }
    }

    /// Subjects to learn from.
    pub fn subjects(&self, n: usize, seed: u64) -> Result<Vec<Subject>> {
        self.drawn(n, 2 * seed)
    }

    /// Subjects that nobody has learned from.
    pub fn test_subjects(&self, n: usize, seed: u64) -> Result<Vec<Subject>> {
        self.drawn(n, 2 * seed + 1)
    }

    fn drawn(&self, n: usize, seed: u64) -> Result<Vec<Subject>> {
        if matches!(self.place, Place::Sepsis | Place::SepsisThreshold) {
            let subject =
                |patient: coirl::domains::Patient| Subject { context: patient.context, start: Some(patient.start) };
            return Ok(Sepsis::patients(n, seed)?.into_iter().map(subject).collect());
        }
        let contexts = self.model.context_space().sample(n, seed)?;
        Ok(contexts.into_iter().map(|context| Subject { context, start: None }).collect())
    }

    /// How experts act for these subjects.
    pub fn demonstrations(&self, subjects: &[Subject], seen: Seen, seed: u64) -> Result<Train> {
        let contexts: Vec<Context> = subjects.iter().map(|subject| subject.context.clone()).collect();
        let weights = self.truth().weights_of_all(&contexts)?;
        let options = ManyOptions { feature_expectations: false, values: false };
        let mut policies = Vec::with_capacity(subjects.len());
        plan_contexts(&self.model, &contexts, &weights, &Planner::default(), options, |plan| {
            policies.push(plan.policy);
            ControlFlow::Continue(())
        })?;
        let demonstration = |(i, (subject, policy)): (usize, (&Subject, &Policy))| {
            let (model, context) = (&self.model, subject.context.clone());
            let mut mdp = model.mdp(&context)?;
            if let Some(start) = subject.start {
                mdp = mdp.starting_in(start)?;
            }
            match seen {
                Seen::FeatureExpectations => {
                    let mu = evaluate::feature_expectations(&mdp, policy)?;
                    let shown = Demonstration::from_feature_expectations(model, context, mu)?;
                    match subject.start {
                        Some(start) => shown.starting_in(model, start),
                        None => Ok(shown),
                    }
                }
                Seen::Trajectory => {
                    let path = Trajectory::sample(&mdp, policy, TRANSITIONS, seed, i as u64)?;
                    Demonstration::from_trajectories(model, context, vec![path])
                }
            }
        };
        let demonstrations = subjects.par_iter().zip(&policies).enumerate().map(demonstration);
        Ok(Train::new(demonstrations.collect::<Result<_>>()?))
    }

    /// An examination in contexts that nobody has learned from.
    pub fn examination(&self, n: usize, seed: u64) -> Result<Examination<'_>> {
        self.examination_on(&self.test_subjects(n, seed)?)
    }

    /// An examination in these contexts.
    pub fn examination_on(&self, subjects: &[Subject]) -> Result<Examination<'_>> {
        let contexts = subjects.iter().map(|subject| subject.context.clone()).collect();
        Examination::new(&self.model, self.truth(), contexts)
    }

    /// How agents that do not learn fare in `n` contexts.
    pub fn yardsticks(&self, n: usize, seed: u64) -> Result<Yardsticks> {
        let examination = self.examination(n, seed)?;
        let (d, k) = (self.truth().dimension(), self.model.n_features());
        let values = (0..d * k).map(|i| f64::from(u8::from(i % k == k - 1))).collect();
        Ok(Yardsticks {
            one_policy: examination.one_policy()?,
            last_feature: examination.score(&Agent::Planned(LinearMapping::new(d, k, values)?))?,
            random: examination.score(&Agent::Uniform)?,
        })
    }
}
