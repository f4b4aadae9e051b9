//! What all pictures of the driving simulator share: the colours of road and verge, cars, and the reward in words.

use super::drawing::{Drawing, Frame, number};
use crate::numbers::short;
use coirl::domains::DrivingScene;
use coirl::model::{Cmdp, Mdp};
use coirl::plan::Policy;

pub(super) const VERGE: &str = "#dfe8d3";
pub(super) const ROAD: &str = "#d9d9de";
pub(super) const MARKING: &str = "#ffffff";
pub(super) const CAR_A: &str = "#0068a4";
pub(super) const CAR_B: &str = "#c85400";
pub(super) const COLLISION: &str = "#bc1f2b";
/// Half a lane: the road is wider than the places where a middle of a car may be.
pub(super) const HALF_LANE: i64 = 10;
const SPEEDS: [&str; 3] = ["slow", "medium", "fast"];

/// Pixels across a road of so many pixels, of a place from verge to verge.
pub(super) fn across(x: f64, width: f64) -> f64 {
    let (first, last) = (DrivingScene::X.0 - HALF_LANE, DrivingScene::X.1 + HALF_LANE);
    width * (x - first as f64) / (last - first) as f64
}

/// Verges and road in a frame, in its coordinates.
pub(super) fn draw_road(drawing: &mut Drawing, frame: Frame) {
    drawing.rectangle(frame, &[("fill", VERGE)]);
    let [first, .., last] = DrivingScene::LANES;
    let from = across((first - HALF_LANE) as f64, frame.width);
    let to = across((last + HALF_LANE) as f64, frame.width);
    drawing.rectangle(Frame { x: frame.x + from, width: to - from, ..frame }, &[("fill", ROAD)]);
}

/// The speed that a policy chooses at the start.
pub(super) fn chosen_speed(mdp: &Mdp<'_>, policy: &Policy) -> Option<usize> {
    let action = policy.actions()?.first()?;
    let pair = mdp.pairs().of_state(0).find(|pair| mdp.pairs().action(*pair) == *action)?;
    let (next, _) = mdp.kernel().successors(pair).next()?;
    DrivingScene::of(next).map(|scene| scene.speed)
}

/// What a speed is called.
pub(super) fn speed_in_words(speed: usize) -> &'static str {
    SPEEDS.get(speed).copied().unwrap_or("?")
}

/// "reward = 0.1·speed − 1·collision − 0.5·off-road".
pub(super) fn reward_in_words(model: &Cmdp, weights: &[f64]) -> String {
    let term = |(i, (weight, name)): (usize, (&f64, &String))| {
        let sign = match (i, *weight < 0.0) {
            (0, false) => "",
            (0, true) => "−",
            (_, false) => " + ",
            (_, true) => " − ",
        };
        format!("{sign}{}·{name}", short(weight.abs()))
    };
    let terms = weights.iter().zip(&model.names().features).enumerate().map(term);
    format!("reward = {}", terms.collect::<String>())
}

/// A car seen from above, its middle at (0, 0), driving upwards.
pub(super) fn draw_car(drawing: &mut Drawing, width: f64, length: f64, colour: &str) {
    let body = Frame { x: -width / 2.0, y: -length / 2.0, width, height: length };
    let round = number(width * 0.28);
    drawing.rectangle(body, &[("rx", &round), ("fill", colour), ("stroke", "#ffffff"), ("stroke-width", "1")]);
    let pane = |share: f64, height: f64| Frame {
        x: -0.36 * width,
        y: share * length,
        width: 0.72 * width,
        height: height * length,
    };
    let glass = number(width * 0.1);
    for frame in [pane(-0.28, 0.15), pane(0.24, 0.11)] {
        drawing.rectangle(frame, &[("rx", &glass), ("fill", "#ffffff"), ("fill-opacity", "0.75")]);
    }
}
