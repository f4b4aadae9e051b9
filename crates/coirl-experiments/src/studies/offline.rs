//! Everything is learned from one demonstration in each of so many contexts, and judged in held-out contexts, in those that were
//! learned from, and where it is asked for by generalised policy improvement instead of planning.

use super::{Run, score_curves};
use crate::curves::Curve;
use crate::experiment::Entrant;
use crate::world::{Place, Seen};
use coirl::agent::Agent;
use coirl::learn::{Problem, Watch};
use coirl::methods::fit;
use coirl::model::{Cmdp, Context};
use coirl::plan::Policy;
use coirl::score::Score;
use coirl::transfer::Transfer;
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};

/// Training contexts in which an agent is judged at most, and whose policies are improved upon at most.
const MOST_JUDGED: usize = 300;
const MOST_IMPROVED_UPON: usize = 100;

/// Settings of an offline study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offline {
    /// Where.
    pub place: Place,
    /// What is seen of experts.
    #[serde(default)]
    pub seen: Seen,
    /// Numbers of contexts to learn from.
    pub contexts: Vec<usize>,
    /// Contexts to be examined in.
    pub test_contexts: usize,
}

impl Offline {
    pub(super) fn run(&self, methods: &[Entrant], run: &Run<'_>) -> Result<Vec<Curve>> {
        let world = run.world(self.place)?;
        let examination = world.examination(self.test_contexts, run.seed)?;
        let most = self.contexts.iter().copied().max().unwrap_or(0);
        let subjects = run.subjects(&world, most)?;
        let mut curves = run.each(methods, |entrant| {
            let (mut test, mut training, mut improved) = (Vec::new(), Vec::new(), Vec::new());
            for (i, &n) in self.contexts.iter().enumerate() {
                run.tell(&entrant.name, i as f64 / self.contexts.len() as f64)?;
                let seen = &subjects[..n];
                let problem = Problem::new(
                    world.model(),
                    &world.demonstrations(seen, self.seen, run.seed)?,
                    entrant.estimator().as_ref(),
                )?;
                let settings = entrant.settings(problem.len(), run.seed);
                let agent = fit(&problem, &settings, Watch::default(), &mut ())?.agent;
                test.push((n as f64, examination.score(&agent)?));
                let judged = &seen[..n.min(MOST_JUDGED)];
                training.push((n as f64, world.examination_on(judged)?.score(&agent)?));
                if entrant.improvement {
                    let known: Vec<Context> =
                        seen[..n.min(MOST_IMPROVED_UPON)].iter().map(|subject| subject.context.clone()).collect();
                    let policies = improve(world.model(), &agent, &known, examination.contexts())?;
                    improved.push((n as f64, examination.score_policies(&policies)?));
                }
            }
            let mut curves = score_curves(&entrant.name, "", &test);
            curves.extend(score_curves(&entrant.name, ", training contexts", &training));
            curves.extend(score_curves(&entrant.name, ", policy improvement", &improved));
            Ok(curves)
        })?;
        let sticks = world.yardsticks(self.test_contexts, run.seed)?;
        for (name, score) in [("one policy for everybody", sticks.one_policy), ("random", sticks.random)] {
            let flat: Vec<(f64, Score)> = self.contexts.iter().map(|&n| (n as f64, score)).collect();
            curves.extend(score_curves(name, "", &flat));
        }
        Ok(curves)
    }
}

/// What generalised policy improvement over the policies of known contexts does in others.
fn improve(model: &Cmdp, agent: &Agent, known: &[Context], test: &[Context]) -> Result<Vec<Policy>> {
    let mapping = agent.planned_for().ok_or(Error::NoMapping { agent: agent.kind() })?;
    let mut transfer = Transfer::new(model, mapping)?;
    transfer.learn(known)?;
    test.iter().map(|context| transfer.policy(context)).collect()
}
