//! The least and the greatest feature expectation that any policy can reach from where a demonstration starts:
//!
//! ```text
//! min_π μ_j  ≤  μ*_j  ≤  max_π μ_j,
//! ```
//!
//! by planning for the rewards −e_j and e_j: 2k plans per kernel serve all starts, for an optimal policy is optimal from
//! everywhere. Where that is too much, min φ_j · horizon … max φ_j · horizon is still a bound.

use super::span::kernels;
use crate::demos::Origin;
use crate::error::{Error, Result};
use crate::learn::Problem;
use crate::model::{Criterion, Features, Mdp};
use crate::plan::{ManyOptions, PlannedReward, Planner};
use std::ops::ControlFlow;

/// Rewards written out at a time; even, so that the two of a feature stay together.
const ROWS: usize = 256;

/// How tight the bounds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundsKind {
    /// Some policy reaches each of them.
    Reached,
    /// From the smallest and the largest value of each feature alone.
    Crude,
}

/// Bounds on feature expectations.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    n_features: usize,
    /// Per demonstration and feature.
    limits: Vec<(f64, f64)>,
    /// How tight they are.
    pub kind: BoundsKind,
}

impl Bounds {
    /// For every demonstration; crude where more than `max_plans` would be needed.
    pub(super) fn of(problem: &Problem<'_>, max_plans: usize) -> Result<Self> {
        let k = problem.n_features();
        let groups = kernels(problem)?;
        if groups.len().saturating_mul(2 * k) > max_plans {
            let limits = crude(problem)?.repeat(problem.len());
            return Ok(Self { n_features: k, limits, kind: BoundsKind::Crude });
        }
        let mut limits = vec![(0.0, 0.0); problem.len() * k];
        let options = ManyOptions { feature_expectations: false, values: true };
        for members in groups {
            let mdp = problem.mdp(members[0])?;
            for first in (0..2 * k).step_by(ROWS) {
                let rows = first..(first + ROWS).min(2 * k);
                let rewards: Vec<f64> = rows.flat_map(|row| (0..k).map(move |j| signed_unit(row, j))).collect();
                Planner::default().plan_many(&mdp, &rewards, options, |plan| {
                    let (j, greatest) = ((first + plan.index) / 2, plan.index.is_multiple_of(2));
                    for &i in &members {
                        let value = value_from(&mdp, problem.data().origin(i), problem.model().initial(), &plan);
                        let (lower, upper) = &mut limits[i * k + j];
                        if greatest { *upper = value } else { *lower = -value }
                    }
                    ControlFlow::Continue(())
                })?;
            }
        }
        Ok(Self { n_features: k, limits, kind: BoundsKind::Reached })
    }

    /// The least and the greatest expectation of a feature from the start of a demonstration.
    pub fn at(&self, demonstration: usize, feature: usize) -> Result<(f64, f64)> {
        let inside = (feature < self.n_features).then_some(demonstration * self.n_features + feature);
        inside.and_then(|at| self.limits.get(at).copied()).ok_or_else(|| {
            let expected = format!("below [{}, {}]", self.limits.len() / self.n_features, self.n_features);
            Error::shape("bounds", expected, format!("[{demonstration}, {feature}]"))
        })
    }

    /// Whether no policy changes a feature, from any start.
    pub(super) fn is_fixed(&self, feature: usize, tolerance: f64) -> bool {
        let of_feature = self.limits.iter().skip(feature).step_by(self.n_features);
        self.kind == BoundsKind::Reached && of_feature.into_iter().all(|(lower, upper)| upper - lower <= tolerance)
    }
}

/// Row 2j is e_j, row 2j + 1 is −e_j.
fn signed_unit(row: usize, column: usize) -> f64 {
    match (row / 2 == column, row.is_multiple_of(2)) {
        (false, _) => 0.0,
        (true, true) => 1.0,
        (true, false) => -1.0,
    }
}

/// The value of a plan from an origin; the gain is the same from everywhere.
fn value_from(mdp: &Mdp<'_>, origin: &Origin, initial: &[f64], plan: &PlannedReward) -> f64 {
    let values = plan.values.as_deref().unwrap_or_default();
    match (mdp.criterion(), origin) {
        (Criterion::Average, _) => plan.value,
        (_, Origin::Model) => initial.iter().zip(values).map(|(p, v)| p * v).sum(),
        (_, Origin::States(states)) => {
            states.iter().map(|state| values[state.index()]).sum::<f64>() / states.len() as f64
        }
    }
}

/// min φ_j · horizon and max φ_j · horizon. Where visits end, a feature of one sign may also be collected never.
fn crude(problem: &Problem<'_>) -> Result<Vec<(f64, f64)>> {
    let k = problem.n_features();
    let horizon = problem.horizon()?;
    let ends = problem.model().criterion() == Criterion::TotalReward;
    let mut extremes = vec![(f64::INFINITY, f64::NEG_INFINITY); k];
    let mut widen = |j: usize, x: f64| extremes[j] = (extremes[j].0.min(x), extremes[j].1.max(x));
    match problem.model().features() {
        Features::State { values, .. } => values.iter().enumerate().for_each(|(at, &x)| widen(at % k, x)),
        Features::StateAction(rows) => {
            // What a sparse row leaves out is zero.
            (0..k).for_each(|j| widen(j, 0.0));
            (0..rows.n_rows()).for_each(|pair| rows.row(pair).for_each(|(j, x)| widen(j, x)));
        }
    }
    let limit = |(least, most): (f64, f64)| match ends {
        true => (horizon * least.min(0.0), horizon * most.max(0.0)),
        false => (horizon * least, horizon * most),
    };
    Ok(extremes.into_iter().map(limit).collect())
}
