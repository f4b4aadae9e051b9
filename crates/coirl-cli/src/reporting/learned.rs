//! What was learned: the matrix of a linear mapping, or how the reward of a network changes with the context.

use super::heat_map::HeatMap;
use super::markup::{Markup, paragraph};
use super::page::Section;
use crate::failure::Failure;
use crate::text::name_of;
use coirl::mapping::RewardMapping;
use coirl::methods::Fitted;
use coirl::model::Context;

/// Features that are shown without leaving some out.
const MOST_FEATURES: usize = 60;
/// Features that are shown of more than that.
const LARGEST: usize = 20;

/// W as a heat map, its features called by these names; nothing where no linear mapping was learned.
pub(crate) fn mapping(fitted: &Fitted, features: &[String]) -> Option<Section> {
    let mapping = fitted.mapping().ok()?;
    let rows: Vec<Vec<f64>> = mapping.values().chunks_exact(mapping.n_features()).map(<[f64]>::to_vec).collect();
    let says = "What every field of the context adds to the weight of every feature in the reward: a weight is the sum of its entries, each \
                times its field. Only their proportions matter. mapping.csv holds the numbers in full.";
    let content = drawn(fitted, features, "The mapping from context to reward weights", rows, says);
    Some(Section::new("mapping", "The learned mapping", content))
}

/// How the reward of a network differs between low and high values of each field; nothing for other agents, and for fewer than two contexts.
///
/// Contexts are compared that occurred, a quarter of them each: one field cannot be moved alone on a simplex.
pub(crate) fn change(fitted: &Fitted, features: &[String], contexts: &[&Context]) -> Result<Option<Section>, Failure> {
    let coirl::agent::Agent::Neural(mapping) = &fitted.agent else { return Ok(None) };
    if contexts.len() < 2 {
        return Ok(None);
    }
    let weights = contexts.iter().map(|context| mapping.weights(context)).collect::<coirl::Result<Vec<_>>>()?;
    let rows = (0..mapping.dimension()).map(|field| difference(contexts, &weights, field)).collect();
    let says = "Mean reward weights in the quarter of the contexts with the highest value of a field, minus those in the quarter with the \
                lowest. Fields that go together in the data also do so here.";
    let content = drawn(fitted, features, "Reward weights at high minus low values of each field", rows, says);
    Ok(Some(Section::new("mapping", "How the reward changes with the context", content)))
}

/// Mean weights of the upper quarter by a field, minus those of the lower.
fn difference(contexts: &[&Context], weights: &[Vec<f64>], field: usize) -> Vec<f64> {
    let value = |i: usize| contexts[i].values().get(field).copied().unwrap_or_default();
    let mut order: Vec<usize> = (0..contexts.len()).collect();
    order.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
    let quarter = (order.len() / 4).max(1);
    let mean = |part: &[usize], j: usize| part.iter().map(|&i| weights[i][j]).sum::<f64>() / part.len() as f64;
    let (low, high) = (&order[..quarter], &order[order.len() - quarter..]);
    if value(low[0]) == value(high[quarter - 1]) {
        return vec![0.0; weights[0].len()];
    }
    (0..weights[0].len()).map(|j| mean(high, j) - mean(low, j)).collect()
}

/// A heat map of rows of fields, with the largest features where there are too many.
fn drawn(fitted: &Fitted, features: &[String], title: &str, rows: Vec<Vec<f64>>, says: &str) -> Markup {
    let n = rows.first().map_or(0, Vec::len);
    let norm = |j: usize| rows.iter().map(|row| row[j] * row[j]).sum::<f64>();
    let mut kept: Vec<usize> = (0..n).collect();
    let left_out = n > MOST_FEATURES;
    if left_out {
        kept.sort_by(|&a, &b| norm(b).total_cmp(&norm(a)));
        kept.truncate(LARGEST);
    }
    let map = HeatMap {
        title: title.into(),
        axes: ["field of the context", "feature of the reward"],
        rows: (0..rows.len()).map(|i| name_of(&fitted.names.contexts, i)).collect(),
        columns: kept.iter().map(|&j| name_of(features, j)).collect(),
        values: rows.iter().map(|row| kept.iter().map(|&j| row[j]).collect()).collect(),
    };
    let some = format!("Shown are the {LARGEST} of {n} features with the largest norm, the largest first.");
    let note = if left_out { paragraph(&some) } else { Markup::default() };
    Markup::all([paragraph(says), note, map.draw()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use coirl::model::ContextSpace;

    #[test]
    fn quarters_are_compared() {
        let contexts: Vec<Context> = (0..8)
            .map(|i| ContextSpace::Any.context(vec![f64::from(7 - i), 3.0]))
            .collect::<coirl::Result<_>>()
            .unwrap_or_else(|error| panic!("{error}"));
        let contexts: Vec<&Context> = contexts.iter().collect();
        // The weight is the square of the first field: (49 + 36 − 1 − 0) / 2.
        let weights: Vec<Vec<f64>> = contexts.iter().map(|context| vec![context.values()[0].powi(2)]).collect();
        assert_eq!(difference(&contexts, &weights, 0), [42.0]);
        assert_eq!(difference(&contexts, &weights, 1), [0.0]);
    }
}
