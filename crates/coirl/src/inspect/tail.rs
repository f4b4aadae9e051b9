//! What lies beyond the ends of the paths, which no demonstration shows.
//!
//! A path of T transitions leaves γᵀ of what follows its last state unseen; estimators put something in its place. Under a mapping W that
//! can be off by
//!
//! ```text
//! γᵀ max_s (max_π V_W(s) − min_π V_W(s))      control variate and decisions, over the last states of the paths
//! γᵀ max_s max_π |V_W(s)|                     truncated, which leaves it out
//! ```
//!
//! whatever the expert does there. As a share of what the experts are seen to gain over chance under W it says what the demonstrations
//! are worth: near zero the paths are long, above one the unseen part can outweigh the seen one. Two plans per demonstration.

use crate::demos::Estimator;
use crate::error::Result;
use crate::learn::Problem;
use crate::model::Context;

/// Above this share nothing is certain: paths are too short for the discount.
pub(super) const SHORT: f64 = 0.5;

/// The most that the unseen part of the paths can be worth under a linear mapping, as a share of `gained`, what the experts are seen to gain
/// over chance under it. Zero for exact demonstrations and for paths that end where nothing follows.
pub(super) fn unseen_share(problem: &Problem<'_>, mapping: &[f64], gained: f64) -> Result<f64> {
    let data = problem.data();
    let bias = data.bias_bound();
    if bias == 0.0 {
        return Ok(0.0);
    }
    if !(bias.is_finite() && gained > 0.0) {
        return Ok(f64::INFINITY);
    }
    let truncated = matches!(data.estimator(), Some(Estimator::Truncated { .. }));
    // The bound on the bias of a feature is this, times what is left of the discount.
    let of_one = problem.model().features().max_abs() * problem.horizon()? * if truncated { 1.0 } else { 2.0 };
    let open: Vec<usize> = (0..problem.len()).filter(|&i| data.bias_bounds()[i] > 0.0).collect();
    let contexts: Vec<&Context> = open.iter().map(|&i| problem.context(i)).collect();
    let mapping = problem.linear(mapping)?;
    let mut weights = Vec::with_capacity(open.len() * problem.n_features());
    for &i in &open {
        weights.extend(mapping.weights(data.input(i))?);
    }
    let best = problem.planner().values(&contexts, &weights)?;
    weights.iter_mut().for_each(|w| *w = -*w);
    let worst = problem.planner().values(&contexts, &weights)?;
    let mut unseen = 0.0;
    for ((&i, (_, best)), (_, worst)) in open.iter().zip(&best).zip(&worst) {
        let largest = if truncated {
            best.iter().chain(worst).fold(0.0, |most: f64, value| most.max(value.abs()))
        } else {
            let last = data.trajectories(i).iter().filter_map(|path| path.states.last());
            last.fold(0.0, |most: f64, state| most.max(best[state.index()] + worst[state.index()]))
        };
        unseen += data.bias_bounds()[i] / of_one * largest;
    }
    Ok(unseen / problem.len() as f64 / gained)
}
