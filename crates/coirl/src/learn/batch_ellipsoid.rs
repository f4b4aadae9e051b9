//! Algorithm 3: the ellipsoid method from roll-outs, for an expert who judges single actions and may vary.
//!
//! In each context the agent plays an episode with the policy that is optimal for the centre W_t. Where it takes an
//! action with Q*(s, a) + ε < V*(s), the expert shows H transitions from s; x̂* are their discounted features, x the
//! agent's own exact feature expectations from s. After n such mistakes the ellipsoid is cut through its centre along
//! Σ c ⊙ (x̂* − x), whose noise is then small enough that W* stays inside. A centre outside the unit box is first
//! brought back by cuts along its coordinates, as in the proof: they remove nothing of the box.
//!
//! ```text
//! H = ⌈log(8S/ε)/(1 − γ)⌉,   M = 2dk(dk + 1)·log(16S√dk/ε),   n = ⌈512·(S/ε)²·log(2M/δ)⌉
//! ```
//!
//! with S, the bound on ‖c ⊙ μ‖₁ (the paper's k/(1 − γ)), and the start's radius for √dk. The paper's theorem: with
//! probability 1 − δ, if the expert of every round is optimal for a mapping in the unit box within ε/(8S) of W* in
//! every entry, there are at most M cuts, hence nM mistakes and fewer than n in the batch at hand. n is large
//! (billions at ε = 0.03 in the driving domain): it is computed and shown, and may be set by hand. An episode costs a
//! plan, what the expert needs and, after a mistake, an evaluation.

use super::ellipsoid::{expert_tolerance, start};
use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::Record;
use super::settings::check_count;
use crate::demos::{Trajectory, truncation_horizon};
use crate::error::{Error, Result, check_positive, check_room};
use crate::model::{ActionId, Criterion, StateId};
use crate::optim::{EllipsoidSet, cuts_to_shrink};
use crate::plan::evaluate;
use crate::random::stream;
use rand::RngExt;

/// Settings of the batch ellipsoid method.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchEllipsoid {
    /// ε: an action is a mistake if it is worse than the best by more than this, on the value as it stands. Defaults to a
    /// thousandth of the largest value there can be.
    pub tolerance: Option<f64>,
    /// δ: the theorem may fail with this probability.
    pub failure_probability: f64,
    /// H: transitions of a roll-out; by default the theorem's.
    pub horizon: Option<usize>,
    /// n: roll-outs per cut; by default the theorem's.
    pub batch: Option<usize>,
    /// Transitions of an episode; by default as many as of a roll-out.
    pub episode: Option<usize>,
}

impl Default for BatchEllipsoid {
    fn default() -> Self {
        Self { tolerance: None, failure_probability: 0.1, horizon: None, batch: None, episode: None }
    }
}

/// What the theorem of Algorithm 3 asks for and promises.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct BatchTheorem {
    /// H.
    pub horizon: usize,
    /// n.
    pub batch: usize,
    /// M.
    pub cuts: f64,
    /// nM.
    pub mistakes: f64,
    /// How far the expert's mapping of a round may be from W*, in every entry.
    pub expert_radius: f64,
}

impl BatchEllipsoid {
    /// The theorem's numbers for a problem with the discounted criterion, from the start that the run's settings name.
    pub fn theorem(&self, problem: &Problem<'_>, initial: Option<&[f64]>) -> Result<BatchTheorem> {
        self.check()?;
        self.numbers(problem, &EllipsoidSet::around_the_box(start(problem, initial))?)
    }

    fn numbers(&self, problem: &Problem<'_>, set: &EllipsoidSet) -> Result<BatchTheorem> {
        let Criterion::Discounted { discount } = problem.model().criterion() else {
            return Err(Error::CriterionMismatch {
                operation: "the theorem of the batch ellipsoid method",
                criterion: problem.model().criterion().name(),
                hint: "set the horizon and the batch by hand",
            });
        };
        let (sum_bound, tolerance) = (problem.sum_bound()?, expert_tolerance(self.tolerance, problem)?);
        // Where no two policies differ by ε, any numbers will do.
        let tail = tolerance / (8.0 * sum_bound);
        let horizon = if tail < 1.0 { truncation_horizon(discount, tail)?.max(1) } else { 1 };
        let cuts = cuts_to_shrink(problem.n_parameters(), 16.0 * sum_bound * set.start_radius() / tolerance);
        let noise = 512.0 * (sum_bound / tolerance).powi(2);
        let batch = (noise * (2.0 * cuts.max(1.0) / self.failure_probability).ln()).ceil().max(1.0) as usize;
        let expert_radius = if sum_bound > 0.0 { tail } else { 1.0 };
        Ok(BatchTheorem { horizon, batch, cuts, mistakes: batch as f64 * cuts, expert_radius })
    }

    fn check(&self) -> Result<()> {
        self.tolerance.map_or(Ok(()), |tolerance| check_positive("tolerance", tolerance))?;
        if !(self.failure_probability > 0.0 && self.failure_probability < 1.0) {
            let reason = "expected a probability of failure between 0 and 1";
            return Err(Error::InvalidSetting {
                name: "failure_probability",
                value: self.failure_probability.to_string(),
                reason,
            });
        }
        for (name, value) in [("horizon", self.horizon), ("batch", self.batch), ("episode", self.episode)] {
            value.map_or(Ok(()), |count| check_count(name, count))?;
        }
        // Batches are summed up as they come; paths are held as a whole.
        for (name, value) in [("horizon", self.horizon), ("episode", self.episode)] {
            check_room(name, &[value.unwrap_or_default()])?;
        }
        Ok(())
    }
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    set: EllipsoidSet,
    /// H, n and the length of an episode, resolved.
    horizon: usize,
    batch: usize,
    episode: usize,
    /// Σ c ⊙ (x̂* − x) over the roll-outs of the batch at hand, and their number.
    difference: Vec<f64>,
    collected: usize,
    /// Episodes with a mistake; each is followed by one roll-out.
    mistakes: u64,
    /// Cuts that brought the centre back to the box.
    box_cuts: u64,
    /// Batches that left nothing to cut.
    without_cut: u64,
}

/// Cuts along coordinates in one step; a step that needs more goes on in the next.
const BOX_CUTS_PER_STEP: usize = 1000;

impl State {
    /// Whether the centre is in the unit box, or as near as cuts along coordinates bring it.
    fn return_to_box(&mut self) -> bool {
        for _ in 0..BOX_CUTS_PER_STEP {
            let mut farthest = (0, 0.0_f64);
            for (j, &u) in self.set.centre().iter().enumerate() {
                if u.abs() > farthest.1.abs() {
                    farthest = (j, u);
                }
            }
            if farthest.1.abs() <= 1.0 {
                return true;
            }
            let mut normal = vec![0.0; self.difference.len()];
            normal[farthest.0] = -farthest.1.signum();
            if !self.set.cut(&normal) {
                return true;
            }
            self.box_cuts += 1;
        }
        false
    }

    /// An episode, and what the expert says about it.
    fn play(&mut self, own: &BatchEllipsoid, problem: &Problem<'_>, run: Run) -> Result<()> {
        let index = run.context(problem);
        let policy = problem.best_response(self.set.centre(), index)?.policy;
        let mdp = problem.mdp(index)?;
        // A seed of its own: an expert with the same seed must not draw its roll-out from the episode's numbers.
        let seed = stream(run.seed, "episode", run.step).random();
        let episode = Trajectory::sample(&mdp, &policy, self.episode, seed, run.step)?;
        let path: Vec<(StateId, ActionId)> = episode.states.iter().copied().zip(episode.actions).collect();
        let (expert, context) = (problem.expert()?, problem.context(index));
        let tolerance = expert_tolerance(own.tolerance, problem)?;
        let Some(at) = expert.first_mistake(run.step, context, &mdp, &path, tolerance)? else { return Ok(()) };
        let Some(&(state, _)) = path.get(at) else {
            return Err(Error::shape("mistake in an episode", format!("below {}", path.len()), at));
        };
        let roll_out = expert.roll_out(run.step, context, &mdp, state, self.horizon)?;
        roll_out.check(mdp.pairs())?;
        let shown = roll_out.discounted_features(&mdp, mdp.criterion().discount())?;
        let agent = evaluate::feature_expectations(&mdp.starting_in(state)?, &policy)?;
        problem.data().add_difference(index, &agent, &shown, -1.0, &mut self.difference);
        self.collected += 1;
        self.mistakes += 1;
        if self.collected >= self.batch {
            if !self.set.cut(&self.difference) {
                self.without_cut += 1;
            }
            self.difference.fill(0.0);
            self.collected = 0;
        }
        Ok(())
    }
}

impl Learner for BatchEllipsoid {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        self.check()?;
        problem.expert()?;
        let criterion = problem.model().criterion();
        if matches!(criterion, Criterion::FiniteHorizon { .. } | Criterion::Average) {
            return Err(Error::CriterionMismatch {
                operation: "the batch ellipsoid method",
                criterion: criterion.name(),
                hint: "it compares roll-outs from the middle of an episode; use a discount",
            });
        }
        let set = EllipsoidSet::around_the_box(start(problem, from.initial))?;
        let (horizon, batch) = match (self.horizon, self.batch) {
            (Some(horizon), Some(batch)) => (horizon, batch),
            (horizon, batch) => {
                let theorem = self.numbers(problem, &set)?;
                (horizon.unwrap_or(theorem.horizon), batch.unwrap_or(theorem.batch))
            }
        };
        Ok(State {
            set,
            horizon,
            batch,
            episode: self.episode.unwrap_or(horizon),
            difference: vec![0.0; problem.n_parameters()],
            collected: 0,
            mistakes: 0,
            box_cuts: 0,
            without_cut: 0,
        })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, run: Run) -> Result<Step> {
        // The centre must not move within a batch, so nothing is collected before it has arrived.
        if state.return_to_box() {
            state.play(self, problem, run)?;
        }
        Ok(Step::from(Record {
            demonstrations: state.mistakes,
            log_volume: Some(state.set.log_volume()),
            ..Record::default()
        }))
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        [state.set.centre(), &state.difference].iter().all(|list| list.len() == problem.n_parameters())
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        Some(state.set.centre().to_vec())
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    fn guarantee(&self, state: &State, problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        if !matches!(problem.model().criterion(), Criterion::Discounted { .. }) {
            return Ok((None, Guarantee::none("discounted_only")));
        }
        let (theorem, cuts) = (self.numbers(problem, &state.set)?, state.set.cuts() as f64);
        if state.horizon < theorem.horizon || state.batch < theorem.batch {
            let guarantee = Guarantee::none("small_batches")
                .with("batch", state.batch as f64)
                .with("horizon", state.horizon as f64)
                .with("theorem_batch", theorem.batch as f64)
                .with("theorem_horizon", theorem.horizon as f64)
                .with("most_cuts", theorem.cuts)
                .with("mistakes", state.mistakes as f64)
                .with("cuts", cuts);
            return Ok((None, guarantee));
        }
        let guarantee = Guarantee::holds("mistakes")
            .kept(cuts <= theorem.cuts)
            .with("probability", 1.0 - self.failure_probability)
            .with("expert_radius", theorem.expert_radius)
            .with("mistakes", state.mistakes as f64)
            .with("cuts", cuts)
            .with("box_cuts", state.box_cuts as f64)
            .with("most_cuts", theorem.cuts);
        Ok((Some(state.batch as f64 * theorem.cuts), guarantee))
    }

    fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self> {
        Ok(Self { tolerance: Some(expert_tolerance(self.tolerance, problem)?), ..*self })
    }

    fn has_loss(&self) -> bool {
        true
    }
}
