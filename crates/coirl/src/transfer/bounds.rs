//! What the theorems of transfer guarantee: with π taken from contexts c_j at distance δ = min ‖c − c_j‖∞ and a linear mapping,
//!
//! | dynamics | policy | V*_c − V^π_c in every state |
//! |---|---|---|
//! | shared | generalised policy improvement | ≤ 2·φ_max/(1−γ)·δ |
//! | mixture Σ cᵢPᵢ | the one of the nearest c_j | ≤ 2·(φ_max + γ·d·V_max)/(1−γ)·δ |
//!
//! φ_max = max ‖Wφ‖₁ over states (pairs, where features depend on the action), V_max = max |V*_c(s)|.
//!
//! A network may change its reward as much as it likes between two contexts, so how near they are says nothing. The proofs use
//! the contexts only to bound ‖R_c − R_{c_j}‖∞ ≤ φ_max·‖f(c) − f(c_j)‖∞ and ‖P_c − P_{c_j}‖₁ ≤ ‖c − c_j‖₁, and so hold as they are
//! with φ_max = max ‖φ‖₁ and
//!
//! | dynamics | δ of a network, in every state V*_c − V^π_c ≤ 2·φ_max/(1−γ)·δ |
//! |---|---|
//! | shared | min ‖f(c) − f(c_j)‖∞ |
//! | mixture | min ‖f(c) − f(c_j)‖∞ + γ/(1−γ)·‖f(c_j)‖∞·‖c − c_j‖₁, π of the c_j that attains it |
//!
//! the last because no value in c_j exceeds φ_max·‖f(c_j)‖∞/(1−γ). The paper prints
//! the second theorem with a further 1/γ: it goes from Q to the value of the start through an extra state. The steps of its
//! proof bound V*_c − V*_{c_j} and V*_{c_j} − V^π_c directly, so the form without 1/γ holds for the values too, and at
//! γ = 0, where the printed one says nothing, it is 2·φ_max·δ. Both are relative to the learned mapping: how far that is
//! from the expert's, they do not say.

use super::basis::{BasisRewards, Coefficients};

/// What no theorem of this module speaks about.
pub const RELATIVE_TO: &str = "relative to the learned mapping, not to the expert";

/// A theorem's bound for one context.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct TheoremBound {
    /// No policy is better than the transferred one by more than this, in any state.
    pub bound: f64,
    /// The bound with the 1/γ that the paper prints for mixtures; infinite where that is.
    pub printed: f64,
    /// δ.
    pub distance: f64,
    /// What δ is a distance of; for a network and a mixture with what the dynamics add.
    pub distance_of: Coefficients,
    /// Number of the nearest known context.
    pub nearest: usize,
}

/// The constants of the theorems for one mapping in one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// γ.
    pub discount: f64,
    /// φ_max.
    pub largest_sum: f64,
    /// A bound on V_max: max |Wφ| / (1−γ); infinite for networks, whose rewards have no common bound.
    pub largest_value: f64,
    /// Number of coefficients of a context: d of a linear mapping, k of a network.
    pub dimension: usize,
}

impl Constants {
    pub(super) fn new(rewards: &BasisRewards, discount: f64) -> Self {
        Self {
            discount,
            largest_sum: rewards.largest_sum(),
            largest_value: rewards.largest() / (1.0 - discount),
            dimension: rewards.size,
        }
    }

    /// What generalised policy improvement loses at most per unit of distance between coefficients.
    pub fn improvement_rate(&self) -> f64 {
        2.0 * self.largest_sum / (1.0 - self.discount)
    }

    /// What the policy of the nearest context loses at most per unit of distance between contexts, for a linear mapping; infinite
    /// for networks.
    pub fn nearest_rate(&self) -> f64 {
        // Without a future it does not matter what values could be.
        let value = if self.discount > 0.0 { self.largest_value } else { 0.0 };
        let moved = self.discount * self.dimension as f64 * value;
        2.0 * (self.largest_sum + moved) / (1.0 - self.discount)
    }

    /// The second theorem as printed, at a distance.
    pub fn printed_nearest(&self, distance: f64) -> f64 {
        divided(self.nearest_rate() * distance, self.discount)
    }
}

/// The printed bound for W on the simplex and features in [0, 1]: 2(1 − γ + γd) / (γ(1−γ)²)·δ.
pub fn printed_on_simplex(dimension: usize, discount: f64, distance: f64) -> f64 {
    let d = dimension as f64;
    divided(2.0 * (1.0 - discount + discount * d) / (1.0 - discount).powi(2) * distance, discount)
}

/// The printed bound for |W| ≤ 1 and features in [0, 1]: 2dk / (γ(1−γ)²)·δ.
pub fn printed_in_ball(dimension: usize, n_features: usize, discount: f64, distance: f64) -> f64 {
    divided(2.0 * (dimension * n_features) as f64 / (1.0 - discount).powi(2) * distance, discount)
}

/// Infinite rather than undefined at discount zero.
pub(super) fn divided(bound: f64, discount: f64) -> f64 {
    if discount > 0.0 { bound / discount } else { f64::INFINITY }
}

/// ‖a − b‖∞.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most, (x, y)| most.max((x - y).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remarks_follow_from_the_theorem() {
        for (d, k, discount) in [(1, 1, 0.5), (3, 4, 0.9), (7, 42, 0.99)] {
            let horizon = 1.0 / (1.0 - discount);
            // Features in [0, 1]: on the simplex ‖Wφ‖₁ ≤ 1, in the ball ‖Wφ‖₁ ≤ dk and |cᵀWφ| ≤ k.
            let simplex = Constants { discount, largest_sum: 1.0, largest_value: horizon, dimension: d };
            let of_remark = printed_on_simplex(d, discount, 1.0);
            assert!((simplex.printed_nearest(1.0) - of_remark).abs() <= 1e-9 * of_remark);
            let (largest_sum, largest_value) = ((d * k) as f64, k as f64 * horizon);
            let ball = Constants { discount, largest_sum, largest_value, dimension: d };
            let of_remark = printed_in_ball(d, k, discount, 1.0);
            assert!((ball.printed_nearest(1.0) - of_remark).abs() <= 1e-9 * of_remark);
        }
        let no_future = Constants { discount: 0.0, largest_sum: 2.0, largest_value: 1.0, dimension: 3 };
        assert_eq!(no_future.nearest_rate(), 4.0);
        assert!(no_future.printed_nearest(1.0).is_infinite() && printed_on_simplex(3, 0.0, 0.1).is_infinite());
    }
}
