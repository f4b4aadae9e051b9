//! Section 4.3 of the paper on the sepsis simulator: learning online, and offline from a limited number of patients, for a linear and
//! for a non-linear truth.
//!
//! Values are gap-normalised, (V − V_random) / (V* − V_random), beside the plain ratio, which is near one for almost anybody here. Below
//! the one policy for the mean context, telling patients apart does harm. Research software, not for clinical use.

use super::{Acting, Contender, Length, Measurement};
use crate::agent::Agent;
use crate::baselines::{Cloning, NeuralCloning};
use crate::demos::{Demonstration, Estimator, Train, Trajectory};
use crate::domains::{Patient, Sepsis};
use crate::error::{Error, Result, check_length};
use crate::evaluate::{Examination, Score, plan_contexts};
use crate::learn::{
    Adaptive, Batch, Ellipsoid, Hidden, Method, MirrorDescent, Neural, Objective, Problem, Record, Recorder, Settings,
    Snapshot, StepSize, Watch, fit,
};
use crate::mapping::{LinearMapping, RewardMapping};
use crate::model::{Cmdp, Context};
use crate::plan::{ManyOptions, Planner, Policy, evaluate};
use crate::transfer::Transfer;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Transitions of a demonstration.
const TRANSITIONS: usize = 40;
/// Training contexts in which an agent is judged at most, and whose policies are improved upon at most.
const MOST_JUDGED: usize = 300;
const MOST_IMPROVED_UPON: usize = 100;

/// What experts want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The linear W*.
    Linear,
    /// One of two rewards, by age.
    Threshold,
}

/// What is seen of an expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Exact feature expectations from the patient's own start.
    FeatureExpectations,
    /// One path of 40 transitions.
    Trajectory,
}

/// The simulator with experts of one kind.
pub struct Ward {
    model: Cmdp,
    truth: Box<dyn RewardMapping>,
}

impl Ward {
    /// The simulator, discount 0.9, with these experts.
    pub fn new(truth: Truth) -> Result<Self> {
        let truth: Box<dyn RewardMapping> = match truth {
            Truth::Linear => Box::new(Sepsis::linear_mapping()),
            Truth::Threshold => Box::new(Sepsis::threshold_mapping()?),
        };
        Ok(Self { model: Sepsis::default().build()?, truth })
    }

    /// The same with experts who want something else.
    pub fn with_truth(self, truth: impl RewardMapping + 'static) -> Result<Self> {
        check_length("features of the truth", self.model.n_features(), truth.n_features())?;
        check_length("contexts of the truth", self.truth.dimension(), truth.dimension())?;
        Ok(Self { truth: Box::new(truth), ..self })
    }

    /// The model.
    pub fn model(&self) -> &Cmdp {
        &self.model
    }

    /// Patients to learn from.
    pub fn patients(&self, n: usize, seed: u64) -> Result<Vec<Patient>> {
        Sepsis::patients(n, 2 * seed)
    }

    /// How experts treat these patients.
    pub fn demonstrations(&self, patients: &[Patient], seen: Seen, seed: u64) -> Result<Train> {
        let contexts: Vec<Context> = patients.iter().map(|patient| patient.context.clone()).collect();
        let weights = self.truth.weights_of_all(&contexts)?;
        let options = ManyOptions { feature_expectations: false, values: false };
        let mut policies = Vec::with_capacity(patients.len());
        plan_contexts(&self.model, &contexts, &weights, &Planner::default(), options, |plan| {
            policies.push(plan.policy);
            ControlFlow::Continue(())
        })?;
        let demonstration = |(i, (patient, policy)): (usize, (&Patient, &Policy))| {
            let (model, context) = (&self.model, patient.context.clone());
            let mdp = model.mdp(&context)?.starting_in(patient.start)?;
            match seen {
                Seen::FeatureExpectations => {
                    let mu = evaluate::feature_expectations(&mdp, policy)?;
                    Demonstration::from_feature_expectations(model, context, mu)?.starting_in(model, patient.start)
                }
                Seen::Trajectory => {
                    let path = Trajectory::sample(&mdp, policy, TRANSITIONS, seed, i as u64)?;
                    Demonstration::from_trajectories(model, context, vec![path])
                }
            }
        };
        let demonstrations = patients.par_iter().zip(&policies).enumerate().map(demonstration);
        Ok(Train::new(demonstrations.collect::<Result<_>>()?))
    }

    /// An examination on patients that nobody has learned from.
    pub fn examination(&self, n: usize, seed: u64) -> Result<Examination<'_>> {
        self.examination_on(Sepsis::patients(n, 2 * seed + 1)?)
    }

    fn examination_on(&self, patients: Vec<Patient>) -> Result<Examination<'_>> {
        let contexts = patients.into_iter().map(|patient| patient.context).collect();
        Examination::new(&self.model, self.truth.as_ref(), contexts)
    }

    /// An agent that wants survival and nothing else.
    pub fn outcome_only(&self) -> Result<Agent> {
        let (d, k) = (self.truth.dimension(), self.model.n_features());
        let values = (0..d * k).map(|i| f64::from(u8::from(i % k == k - 1))).collect();
        Ok(Agent::Planned(LinearMapping::new(d, k, values)?))
    }
}

/// A mapping made as the paper makes its W*: by the ellipsoid method on recorded trajectories, here of simulated clinicians with `n`
/// patients. It explains what they did as well as a linear mapping can that objects to every difference.
pub fn mapping_of_clinicians(n: usize, seed: u64) -> Result<LinearMapping> {
    let sepsis = Sepsis::default();
    let (model, clinicians) = (sepsis.build()?, sepsis.clinicians()?);
    let demonstration = |(i, patient): (usize, &Patient)| {
        let mdp = model.mdp(&patient.context)?.starting_in(patient.start)?;
        let path = Trajectory::sample(&mdp, &clinicians, TRANSITIONS, seed, i as u64)?;
        Demonstration::from_trajectories(&model, patient.context.clone(), vec![path])
    };
    let patients = Sepsis::patients(n, seed)?;
    let train = Train::new(patients.iter().enumerate().map(demonstration).collect::<Result<_>>()?);
    let problem = Problem::new(&model, &train, &Estimator::ControlVariate)?;
    let settings = Settings { seed, record_loss: false, ..Settings::new(Method::Ellipsoid(Ellipsoid::default())) };
    Ok(fit(&problem, &settings, Watch::default(), &mut ())?.mapping()?.clone())
}

/// What learning is measured against: the values of agents that do not learn.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Yardsticks {
    /// One policy for the mean context: below it, telling patients apart does harm.
    pub one_policy: Score,
    /// Survival is all that is wanted.
    pub outcome_only: Score,
    /// Any known action.
    pub random: Score,
}

/// How agents that do not learn fare on `n` patients.
pub fn yardsticks(truth: Truth, n: usize, seed: u64) -> Result<Yardsticks> {
    let ward = Ward::new(truth)?;
    let examination = ward.examination(n, seed)?;
    Ok(Yardsticks {
        one_policy: examination.one_policy()?,
        outcome_only: examination.score(&ward.outcome_only()?)?,
        random: examination.score(&Agent::Uniform)?,
    })
}

/// How large an experiment is.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Numbers of contexts after which, or from which, is learned.
    pub contexts: Vec<usize>,
    /// Every seed is a run of its own: patients, demonstrations and method.
    pub seeds: Vec<u64>,
    /// Patients to be examined on.
    pub test_contexts: usize,
}

/// Who learns online, from W = 0: Algorithm 1 with the theory's step, and the adaptive learner.
pub fn online_contenders(seen: Seen) -> Vec<Contender> {
    let theory = MirrorDescent { step_size: StepSize::Theory { multiplier: 1.0 }, ..MirrorDescent::default() };
    let adaptive = || Method::Adaptive(Adaptive::default());
    let plain = Estimator::Truncated { horizon: None };
    let psgd = Contender::new("psgd", plain.clone(), Method::MirrorDescent(theory));
    match seen {
        Seen::FeatureExpectations => vec![psgd, Contender::new("adaptive", plain, adaptive())],
        Seen::Trajectory => vec![
            psgd,
            Contender::new("adaptive", plain, adaptive()),
            Contender::new("adaptive, control variate", Estimator::ControlVariate, adaptive()),
            Contender::new("adaptive, decisions", Estimator::Decisions, adaptive()),
        ],
    }
}

/// Online: contexts come one by one, and the agent is examined after so many of them. One measurement per contender, number of
/// contexts and seed is handed to `sink`, which may stop the experiment.
pub fn online(
    seen: Seen,
    contenders: &[Contender],
    size: &Size,
    sink: &mut dyn FnMut(Measurement) -> ControlFlow<()>,
) -> Result<()> {
    let ward = Ward::new(Truth::Linear)?;
    let most = size.contexts.iter().copied().max().unwrap_or(0);
    for &seed in &size.seeds {
        let examination = ward.examination(size.test_contexts, seed)?;
        let train = ward.demonstrations(&ward.patients(most, seed)?, seen, seed)?;
        for contender in contenders {
            let problem = Problem::new(&ward.model, &train, &contender.estimator)?;
            let mut settings = contender.settings(problem.len(), seed);
            settings.stop.max_steps = Some(most as u64);
            settings.initial = Some(vec![0.0; problem.n_parameters()]);
            let mut examiner = Examiner { examination: &examination, contexts: &size.contexts, measured: Vec::new() };
            fit(&problem, &settings, Watch::default(), &mut examiner)?;
            for (contexts, score) in examiner.measured {
                let contender = contender.name;
                if sink(Measurement { contender, contexts, seed, acting: Acting::Test, score }).is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Examines an agent after so many steps.
struct Examiner<'e> {
    examination: &'e Examination<'e>,
    contexts: &'e [usize],
    measured: Vec<(usize, Score)>,
}

impl Recorder for Examiner<'_> {
    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> Result<ControlFlow<()>> {
        let contexts = record.step as usize;
        if self.contexts.contains(&contexts) {
            self.measured.push((contexts, self.examination.score(&snapshot.agent()?)?));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Who learns offline when the truth is linear: the paper's schedule (mini-batches of 10 with repetition, α = 0.25·0.95ᵗ, 60 steps)
/// from plain trajectories and from better estimates, cloning, and learners of our own.
pub fn linear_contenders() -> Vec<Contender> {
    let paper = || {
        Method::MirrorDescent(MirrorDescent {
            step_size: StepSize::Schedule { initial: 0.25, decay: 0.95 },
            batch: Batch::WithReplacement { size: 10 },
            ..MirrorDescent::default()
        })
    };
    let adaptive = |objective| Method::Adaptive(Adaptive { objective, ..Adaptive::default() });
    let plain = || Estimator::Truncated { horizon: None };
    vec![
        Contender::new("psgd as in the paper", plain(), paper()).lasting(Length::Steps(60)).with_improvement(),
        Contender::new("psgd, control variate", Estimator::ControlVariate, paper()).lasting(Length::Steps(60)),
        Contender::new("adaptive", plain(), adaptive(Objective::Loss)).lasting(Length::Passes(3)),
        Contender::new("adaptive, control variate", Estimator::ControlVariate, adaptive(Objective::Loss))
            .lasting(Length::Passes(3))
            .with_improvement(),
        Contender::new("adaptive, decisions", Estimator::Decisions, adaptive(Objective::Loss))
            .lasting(Length::Passes(3)),
        Contender::new("adaptive, likelihood", Estimator::Decisions, adaptive(Objective::likelihood()))
            .lasting(Length::Passes(3))
            .with_improvement(),
        cloning("cloning by a network", true),
        cloning("cloning by a network, unmasked", false),
        logistic(),
    ]
}

/// Who learns offline when the truth has a threshold: the best linear mapping, the paper's network (mini-batches of 32 with repetition,
/// α = 0.3·0.96ᵗ, 200 steps), the same loss with Adam and better estimates, cloning, and the likelihood of single actions.
pub fn threshold_contenders() -> Vec<Contender> {
    let adaptive = Method::Adaptive(Adaptive::default());
    let on_loss = || {
        let hidden = Hidden::Plain;
        Method::Neural(Neural { hidden, objective: Objective::Loss, ..Neural::default() })
    };
    let plain = Estimator::Truncated { horizon: None };
    vec![
        Contender::new("linear, control variate", Estimator::ControlVariate, adaptive.clone())
            .lasting(Length::Passes(3)),
        Contender::new("linear, decisions", Estimator::Decisions, adaptive).lasting(Length::Passes(3)),
        Contender::new("network as in the paper", plain, Method::Neural(Neural::paper())).lasting(Length::Steps(200)),
        Contender::new("network, control variate", Estimator::ControlVariate, on_loss()),
        Contender::new("network, decisions", Estimator::Decisions, on_loss()),
        Contender::new("network, likelihood", Estimator::Decisions, Method::Neural(Neural::default()))
            .with_improvement(),
        cloning("cloning by a network", true),
    ]
}

fn cloning(name: &'static str, masked: bool) -> Contender {
    let own = NeuralCloning { masked, most_probable: true, ..NeuralCloning::default() };
    Contender::new(name, Estimator::ControlVariate, Method::NeuralCloning(own))
}

fn logistic() -> Contender {
    let own = Cloning { most_probable: true, ..Cloning::default() };
    Contender::new("cloning, logistic", Estimator::ControlVariate, Method::Cloning(own)).lasting(Length::Steps(100))
}

/// Offline: everything is learned from one trajectory in each of so many contexts. Measurements are handed to `sink`, which may stop the
/// experiment.
pub fn offline(
    truth: Truth,
    contenders: &[Contender],
    size: &Size,
    sink: &mut dyn FnMut(Measurement) -> ControlFlow<()>,
) -> Result<()> {
    let ward = Ward::new(truth)?;
    for &seed in &size.seeds {
        let examination = ward.examination(size.test_contexts, seed)?;
        let test: Vec<Context> = examination.contexts().to_vec();
        for &contexts in &size.contexts {
            let patients = ward.patients(contexts, seed)?;
            let train = ward.demonstrations(&patients, Seen::Trajectory, seed)?;
            let judged = patients[..contexts.min(MOST_JUDGED)].to_vec();
            let known: Vec<Context> =
                patients[..contexts.min(MOST_IMPROVED_UPON)].iter().map(|patient| patient.context.clone()).collect();
            let on_training = ward.examination_on(judged)?;
            for contender in contenders {
                let problem = Problem::new(&ward.model, &train, &contender.estimator)?;
                let settings = contender.settings(problem.len(), seed);
                let agent = fit(&problem, &settings, Watch::default(), &mut ())?.agent;
                let mut scores =
                    vec![(Acting::Test, examination.score(&agent)?), (Acting::Training, on_training.score(&agent)?)];
                if contender.improvement {
                    let improved = improved(&ward.model, &agent, &known, &test)?;
                    scores.push((Acting::Improved, examination.score_policies(&improved)?));
                }
                for (acting, score) in scores {
                    let contender = contender.name;
                    if sink(Measurement { contender, contexts, seed, acting, score }).is_break() {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// What generalised policy improvement over the policies of known contexts does in others.
fn improved(model: &Cmdp, agent: &Agent, known: &[Context], test: &[Context]) -> Result<Vec<Policy>> {
    let mapping = agent.planned_for().ok_or(Error::NoMapping { agent: agent.kind() })?;
    let mut transfer = Transfer::new(model, mapping)?;
    transfer.learn(known)?;
    test.iter().map(|context| transfer.policy(context)).collect()
}
