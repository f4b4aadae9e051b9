//! What "optimal" means: the sum or the average that a policy maximises.

use crate::error::{Error, Result, check_room};

/// The optimality criterion of a model. The discount lives here and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Criterion {
    /// Σ γᵗ R over an infinite horizon, γ < 1.
    Discounted {
        /// γ.
        discount: f64,
    },
    /// Σ γᵗ R over the first `steps` decisions, γ ≤ 1; nothing is collected in the state reached last.
    FiniteHorizon {
        /// Number of decisions.
        steps: usize,
        /// γ.
        discount: f64,
    },
    /// Σ R until absorption; only where every policy is absorbed and absorbing states have zero features.
    TotalReward,
    /// The long-run average of R per step; only for unichain models.
    Average,
}

impl Criterion {
    /// Infinite horizon; a discount of exactly 1 means [`Criterion::TotalReward`].
    pub fn discounted(discount: f64) -> Result<Self> {
        match discount {
            1.0 => Ok(Criterion::TotalReward),
            _ => Criterion::Discounted { discount }.checked(),
        }
    }

    /// Finite horizon.
    pub fn finite_horizon(steps: usize, discount: f64) -> Result<Self> {
        Criterion::FiniteHorizon { steps, discount }.checked()
    }

    /// γ; one for the criteria without.
    pub fn discount(self) -> f64 {
        match self {
            Criterion::Discounted { discount } | Criterion::FiniteHorizon { discount, .. } => discount,
            Criterion::TotalReward | Criterion::Average => 1.0,
        }
    }

    /// The criterion in words.
    pub fn name(self) -> &'static str {
        match self {
            Criterion::Discounted { .. } => "discounted",
            Criterion::FiniteHorizon { .. } => "finite-horizon",
            Criterion::TotalReward => "total-reward",
            Criterion::Average => "average-reward",
        }
    }

    pub(crate) fn checked(self) -> Result<Self> {
        let value = self.discount();
        let highest = if matches!(self, Criterion::Discounted { .. }) { 1.0_f64.next_down() } else { 1.0 };
        if !(0.0..=highest).contains(&value) {
            return Err(Error::InvalidDiscount { value });
        }
        match self {
            Criterion::FiniteHorizon { steps: 0, .. } => Err(Error::InvalidHorizon { steps: 0 }),
            Criterion::FiniteHorizon { steps, .. } => check_room("horizon", &[steps]).map(|()| self),
            _ => Ok(self),
        }
    }
}
