//! What is proved about a result, as a status with figures: artefacts hold these, and sentences are made of them where people read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Whether something is proved about a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuaranteeStatus {
    /// The bound holds for this run.
    Holds,
    /// The run went beyond its bound, so that one of its assumptions does not hold.
    Broken,
    /// Nothing is proved, and `reason` says why.
    #[default]
    None,
}

/// What is proved about a result, or why nothing is.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Guarantee {
    /// Whether a bound holds.
    pub status: GuaranteeStatus,
    /// What is bounded, or what is missing for a bound, in a word such as `average_loss` or `not_convex`.
    pub reason: Cow<'static, str>,
    /// Figures that belong to it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<Cow<'static, str>, f64>,
}

impl Default for Guarantee {
    fn default() -> Self {
        Self::none("no_theorem")
    }
}

impl Guarantee {
    /// A bound on this holds.
    pub fn holds(reason: &'static str) -> Self {
        Self { status: GuaranteeStatus::Holds, ..Self::none(reason) }
    }

    /// Nothing is proved, for this reason.
    pub fn none(reason: &'static str) -> Self {
        Self { status: GuaranteeStatus::None, reason: reason.into(), figures: BTreeMap::new() }
    }

    /// Of files from before it was kept.
    pub(super) fn not_recorded() -> Self {
        Self::none("not_recorded")
    }

    /// Broken where the run did not keep to it.
    pub fn kept(self, kept: bool) -> Self {
        let status = if kept { self.status } else { GuaranteeStatus::Broken };
        Self { status, ..self }
    }

    /// With a figure; one that overflowed says nothing and is left out.
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        if value.is_finite() {
            self.figures.insert(name.into(), value);
        }
        self
    }

    /// With a figure, where there is something to count.
    pub fn with_count(self, name: &'static str, count: u64) -> Self {
        if count > 0 { self.with(name, count as f64) } else { self }
    }

    fn get(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or_default()
    }

    /// The sentence of a reason that has no figures.
    fn sentence(&self) -> Option<&'static str> {
        Some(match &*self.reason {
            "no_theorem" => "no bound is claimed",
            "not_recorded" => "the version that wrote the file kept no status of its bound",
            "not_convex" => "the sphere is not convex: no bound holds",
            "not_convex_and_estimated" => "the sphere is not convex and the gradient is estimated: no bound holds",
            "network_not_convex" => "the loss of a network is not convex: no bound holds",
            "sampled" => "demonstrations are sampled: the bound holds in expectation only",
            "partial_batches" => "steps look at a part of the demonstrations: the bound holds in expectation only",
            "other_average" => "the bound is for the average of W_1 to W_T",
            "simplex_start_and_step" => "on the simplex the bound needs the uniform start and a constant step",
            "overflowed" => "the bound overflows: nothing is proved",
            "no_step" => "no step was taken",
            "no_step_or_one_reward" => "no step was taken, or there is only one reward",
            "forward_differences_only" => "the theorem is for forward differences along normal directions",
            "theorem_conditions" => "the theorem needs exact demonstrations, full batches, the ball and its own step",
            "best_iterate" => "the expected loss of the best iterate is at most the least in the ball plus this",
            "recorded_expert" => {
                "the demonstrations were recorded: they come whenever the agent acts differently, not when it \
                 is worse by the tolerance, and no number of them is proved"
            }
            "discounted_only" => "the theorem is for the discounted criterion",
            "gap_only" => "no bound in advance: the gap is what is known of this run",
            "unknown_rate" => {
                "a linear rate whose factor depends on the width of the policies' polytope, which is not known; \
                 the gap is what is known of this run"
            }
            "beyond_features" => {
                "estimated feature expectations are beyond what features allow: the bound does not hold"
            }
            "worst_gain" => {
                "the agent's worst gain over the expert is below the value of the game by no more than this"
            }
            "nothing_learned" => "nothing was learned: nothing bounds what is lost",
            _ => return None,
        })
    }

    fn write_demonstrations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at most this many demonstrations, from an expert who is optimal for one mapping with entries in [-1, 1], \
             shows exact feature expectations, and only where the agent is worse by more than {}; there were {}; \
             the log-volume fell by {:.3}, by the lemma at least {:.3}; {}",
            self.get("tolerance"),
            self.get("demonstrations"),
            self.get("fall"),
            self.get("least_fall"),
            match self.status {
                GuaranteeStatus::Broken => "the run breaks the bound: this expert is not such a one",
                _ => "the run keeps the bound",
            }
        )?;
        match self.get("without_cut") {
            0.0 => Ok(()),
            none => write!(f, "; {none} demonstrations left nothing to cut"),
        }
    }

    fn write_cuts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no bound is printed; {} cuts from {} demonstrations", self.get("cuts"), self.get("demonstrations"))?;
        match self.get("violated") {
            0.0 => f.write_str(", all satisfied by the mapping")?,
            violated => write!(
                f,
                " contradict each other: the mapping fails {violated} of them, the worst by {:.3e} \
                 (per unit length of mapping and cut)",
                self.get("violation")
            )?,
        }
        for (name, what) in [
            ("forgotten", "more were forgotten and may be violated"),
            ("unfinished", "questions left replay with cuts possibly left to add"),
        ] {
            if self.get(name) > 0.0 {
                write!(f, "; {} {what}", self.get(name))?;
            }
        }
        Ok(())
    }

    fn write_mistakes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.status == GuaranteeStatus::Broken { "breaks" } else { "keeps" };
        write!(
            f,
            "with probability {} at most this many episodes with a mistake, and those of the batch at hand, if the \
             expert of every round is optimal for a mapping with entries in [-1, 1] within {:.3e} of the same truth in each; \
             there were {} mistakes and {} cuts ({} along coordinates) of {:.0}; the run {verb} the bound",
            self.get("probability"),
            self.get("expert_radius"),
            self.get("mistakes"),
            self.get("cuts"),
            self.get("box_cuts"),
            self.get("most_cuts"),
        )
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sentence) = self.sentence() {
            return f.write_str(sentence);
        }
        match &*self.reason {
            "average_loss" => write!(
                f,
                "Loss of the averaged mapping is at most the least loss in the set plus this (for the steps taken; \
                 D*L*sqrt(2/(sigma*T)) of the theorem is {:.6})",
                self.get("theorem")
            ),
            "least_cautious_loss" => {
                let (advantage, noise) = (self.get("advantage"), self.get("noise"));
                write!(
                    f,
                    "the gap is to the least of Loss(W) + k|W| among mappings under which the experts beat chance by one; \
                     |G| = {advantage:.4} +- {noise:.4}"
                )?;
                if advantage < 2.0 * noise {
                    f.write_str(
                        ": within its own noise of zero, so the normalisation, and with it the result, is not to be trusted",
                    )?;
                }
                Ok(())
            }
            "demonstrations" => self.write_demonstrations(f),
            "mistakes" => self.write_mistakes(f),
            "small_batches" => write!(
                f,
                "nothing is proved for batches of {} roll-outs of {} transitions; the theorem needs {} of {}, and then \
                 allows {:.0} cuts; there were {} mistakes and {} cuts",
                self.get("batch"),
                self.get("horizon"),
                self.get("theorem_batch"),
                self.get("theorem_horizon"),
                self.get("most_cuts"),
                self.get("mistakes"),
                self.get("cuts")
            ),
            "cuts" => self.write_cuts(f),
            "likelihood" => {
                let distance = self.get("distance");
                write!(
                    f,
                    "the likelihood is {distance:.1e} standard errors from its optimum; nothing bounds what planning loses"
                )
            }
            "dual" => {
                let gap = self.get("dual_gap");
                write!(f, "the dual is within {gap:.1e} of its least value; no bound on the loss of planning")
            }
            "matched" => {
                let steepest = self.get("steepest");
                write!(f, "feature expectations match to {steepest:.1e}; no bound on the loss of planning")
            }
            "duals" => {
                write!(f, "{} of {} contexts at the least value of their dual", self.get("done"), self.get("contexts"))
            }
            "cloned" => {
                f.write_str("a cloned policy has no reward: nothing bounds what it loses")?;
                match self.get("left_out") {
                    0.0 => Ok(()),
                    out => write!(
                        f,
                        "; {out} of {} demonstrated actions are not known and were left out",
                        self.get("demonstrated")
                    ),
                }
            }
            other => {
                f.write_str(&other.replace('_', " "))?;
                self.figures.iter().try_for_each(|(name, value)| write!(f, "; {} {value}", name.replace('_', " ")))
            }
        }
    }
}

/// max over agents, min over rewards w of w·(μ̄ − μ_E): what an agent can be sure to gain over the expert, whatever the reward.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GameValue {
    /// What the returned agent is sure of; the value is at least this.
    pub lower: f64,
    /// What some reward denies to every agent; the value is at most this.
    pub upper: f64,
    /// Which rewards there are; nothing in files from before it was kept.
    #[serde(default)]
    pub rewards: Option<GameRewards>,
}

/// The rewards that a game is played over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GameRewards {
    /// ‖w‖₂ ≤ 1.
    UnitBall,
    /// ‖w‖₁ ≤ 1.
    UnitCrossPolytope,
    /// w ≥ 0, Σw = 1.
    Simplex,
}

impl fmt::Display for GameValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.rewards {
            Some(GameRewards::UnitBall) => {
                "rewards of length one: the value is minus the distance of the expert's feature expectations from those that \
                 policies can have, zero unless demonstrations are noisy"
            }
            Some(GameRewards::UnitCrossPolytope) => {
                "rewards whose weights have absolute values that sum to one: what the agent can be sure to gain over the expert"
            }
            Some(GameRewards::Simplex) => {
                "rewards whose weights are not negative and sum to one: what the agent can be sure to gain over the expert"
            }
            None => "what the agent can be sure to gain over the expert",
        })
    }
}
