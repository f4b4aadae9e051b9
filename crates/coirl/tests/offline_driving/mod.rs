//! The offline driving setting of the published code: 40 steps of PSGD with step 0.3·0.92ᵗ on mini-batches of 10 drawn with
//! replacement, from trajectories of 40 transitions in n contexts, scored on 80 others.
#![allow(dead_code)] // the test and the benchmark each use a part

use coirl::contextual::plan_mapping;
use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Driving;
use coirl::learn::{Average, Batch, MirrorDescent, Problem, StepSize, Watch};
use coirl::methods::{Method, Settings, fit};
use coirl::model::{Cmdp, Context};
use coirl::plan::{ManyOptions, Policy, evaluate};
use coirl::transfer::{How, Transfer};

pub(crate) const TEST_CONTEXTS: usize = 80;
const TRANSITIONS: usize = 40;
const STEPS: u64 = 40;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// Share of the expert's value when every test context is planned for.
    pub(crate) planned: f64,
    /// The same by generalised policy improvement over the policies of the training contexts.
    pub(crate) improved: f64,
    /// The same by the policy of the nearest training context.
    pub(crate) nearest: f64,
    /// Distinct policies of the training contexts.
    pub(crate) n_policies: usize,
    /// Largest gap of the improved policies from the start, for the learned mapping.
    pub(crate) largest_gap: f64,
    /// The largest bound of one backup.
    pub(crate) largest_bound: f64,
    /// Sweeps of planning from scratch, and from the improved policies.
    pub(crate) sweeps: (usize, usize),
}

pub(crate) fn run(model: &Cmdp, n: usize, seed: u64) -> coirl::Result<Outcome> {
    let truth = Driving::online_mapping();
    let options = ManyOptions { feature_expectations: true, values: false };
    let contexts = model.context_space().sample(n, 2 * seed)?;
    let mut seen = Vec::with_capacity(n);
    for (i, (context, plan)) in contexts.iter().zip(plan_mapping(model, &truth, &contexts, options)?).enumerate() {
        let path = Trajectory::sample(&model.mdp(context)?, &plan.policy, TRANSITIONS, seed, i as u64)?;
        seen.push(Demonstration::from_trajectories(model, context.clone(), vec![path])?);
    }
    let problem = Problem::new(model, &Train::new(seen), &Estimator::Truncated { horizon: None })?;
    let method = Method::MirrorDescent(MirrorDescent {
        step_size: StepSize::Schedule { initial: 0.3, decay: 0.92 },
        batch: Batch::WithReplacement { size: 10 },
        average: Average::AfterUpdate,
        ..MirrorDescent::default()
    });
    let mut settings = Settings { seed, record_loss: Some(false), ..Settings::new(method) };
    settings.stop.max_steps = Some(STEPS);
    let fitted = fit(&problem, &settings, Watch::default(), &mut ())?;

    let mut transfer = Transfer::new(model, fitted.mapping()?.clone())?;
    transfer.learn(&contexts)?;
    let test = model.context_space().sample(TEST_CONTEXTS, 2 * seed + 1)?;
    let expert: Vec<Policy> = policies(plan_mapping(model, &truth, &test, options)?);
    let planned: Vec<Policy> = policies(plan_mapping(model, fitted.mapping()?, &test, options)?);
    let value = |chosen: &[Policy]| -> coirl::Result<f64> {
        let worth = |(context, policy): (&Context, &Policy)| {
            let mdp = model.mdp(context)?;
            evaluate::value(&mdp, &mdp.reward(&truth.weights(context)?)?, policy)
        };
        test.iter().zip(chosen).map(worth).sum()
    };
    let (mut improved, mut nearest, mut sweeps) = (Vec::new(), Vec::new(), (0, 0));
    let (mut largest_gap, mut largest_bound) = (0.0_f64, 0.0_f64);
    for context in &test {
        let transferred = transfer.transfer(context, None)?;
        let gap = transfer.realised_gap(context, &transferred.values)?;
        sweeps.0 += gap.sweeps;
        if let How::Planned { sweeps: needed, .. } = transfer.plan(context, Some(&transferred))?.how {
            sweeps.1 += needed;
        }
        largest_gap = largest_gap.max(gap.from_start);
        largest_bound = largest_bound.max(transferred.bound);
        let known = transfer.known()[0];
        nearest.push(known.policy(known.policy_of(transfer.bound(context)?.nearest)));
        improved.push(transferred.policy);
    }
    let best = value(&expert)?;
    Ok(Outcome {
        planned: value(&planned)? / best,
        improved: value(&improved)? / best,
        nearest: value(&nearest)? / best,
        n_policies: transfer.n_policies(),
        largest_gap,
        largest_bound,
        sweeps,
    })
}

fn policies(plans: Vec<coirl::plan::PlannedReward>) -> Vec<Policy> {
    plans.into_iter().map(|plan| plan.policy).collect()
}

/// The mean over runs of a number.
pub(crate) fn mean(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(number).sum::<f64>() / outcomes.len() as f64
}
