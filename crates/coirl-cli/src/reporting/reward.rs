//! The reward in one context: a bar per feature, to the right where it is sought and to the left where it is avoided.

use super::demonstrated::Field;
use super::heat_map::shown;
use super::markup::{Markup, column_header, element, framed, pairs, paragraph, text};
use super::page::Section;
use crate::failure::Failure;
use crate::numbers::short;
use crate::text::name_of;
use coirl::methods::Fitted;
use coirl::model::Context;

/// Features that are shown.
const MOST: usize = 20;
/// So many weights within so small a share of the largest tell nothing apart.
const ALIKE: usize = 8;
const CLOSE: f64 = 0.03;

/// Weights of the reward in a context, the largest first; nothing for agents that act without a reward. `given` says whether somebody asked
/// for the context, or it is the mean of those learned from; that mean is told by `means` where these are known in units of their own.
pub(crate) fn reward(
    fitted: &Fitted,
    features: &[String],
    context: &Context,
    given: bool,
    means: &[Field],
) -> Result<Option<Section>, Failure> {
    let Ok(mapping) = fitted.agent.reward_mapping() else { return Ok(None) };
    let weights = mapping.weights(context)?;
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].abs().total_cmp(&weights[a].abs()));
    let left_out = order.len().saturating_sub(MOST);
    order.truncate(MOST);
    let most = order.first().map_or(0.0, |&j| weights[j].abs());
    let row = |&j: &usize| {
        let cells = [
            element("th", &[("scope", "row")], text(&name_of(features, j))),
            element("td", &[], text(&shown(weights[j], most))),
            element("td", &[("class", "bar")], bar(if most > 0.0 { weights[j] / most } else { 0.0 })),
        ];
        element("tr", &[], Markup::all(cells))
    };
    let title = "Weight of each feature in the reward";
    let header = Markup::all(["feature", "weight", ""].map(column_header));
    let table = Markup::all([
        element("caption", &[], text(title)),
        element("thead", &[], element("tr", &[], header)),
        element("tbody", &[], Markup::all(order.iter().map(row))),
    ]);
    let which = if given { "In this context:" } else { "In the mean of the contexts that were learned from:" };
    let fields: Vec<(String, String)> = if given || means.is_empty() {
        let fields = context.values().iter().enumerate();
        fields.map(|(i, x)| (name_of(&fitted.names.contexts, i), short(*x))).collect()
    } else {
        let mean = |own: &Field| own.values.iter().sum::<f64>() / own.values.len().max(1) as f64;
        means.iter().map(|own| (own.name.clone(), (own.shown)(mean(own)))).collect()
    };
    let note = match left_out {
        0 => Markup::default(),
        n => paragraph(&format!("The {MOST} largest; {n} more are smaller.")),
    };
    let alike = match alike(&weights) {
        Some([least, most]) => paragraph(&format!(
            "The largest weights are all alike, from {} to {}: hardly anything was learned that tells features apart.",
            short(least),
            short(most)
        )),
        None => Markup::default(),
    };
    let content = Markup::all([
        alike,
        paragraph(which),
        pairs(fields.iter().map(|(name, x)| (name.as_str(), x.clone()))),
        framed(title, element("table", &[("class", "bars")], table)),
        note,
    ]);
    Ok(Some(Section::new("reward", "The reward in one context", content)))
}

/// The least and the largest of the largest weights, where these are as good as equal.
fn alike(weights: &[f64]) -> Option<[f64; 2]> {
    let mut sizes: Vec<f64> = weights.iter().map(|w| w.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let (most, least) = (sizes.first()?, sizes.get(ALIKE - 1)?);
    (*least > (1.0 - CLOSE) * most).then_some([*least, *most])
}

/// A bar from the middle of its cell, half as wide as the cell for −1 and 1.
fn bar(x: f64) -> Markup {
    let (class, start) = if x < 0.0 { ("minus", 50.0 + 50.0 * x) } else { ("plus", 50.0) };
    let style = format!("margin-left:{start:.1}%;width:{:.1}%", 50.0 * x.abs());
    element("span", &[("class", class), ("style", &style)], Markup::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_are_all_alike_are_remarked_on() {
        let learned: Vec<f64> = (0..12).map(|i| if i < 9 { 0.138 + 0.0002 * f64::from(i) } else { 0.001 }).collect();
        assert!(alike(&learned).is_some_and(|[least, most]| least > 0.137 && most < 0.14));
        assert_eq!(alike(&[0.5, -0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]), None);
        assert_eq!(alike(&[0.2, 0.2]), None);
        assert_eq!(alike(&[0.0; 9]), None);
    }
}
