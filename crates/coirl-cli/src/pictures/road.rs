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
const SPEEDS: [&str; 3] = ["slow", "medium", "fast"];

/// A view of the road: how much is seen beyond the outermost places of car A, and how far the road reaches beyond the outermost lanes' middles.
/// A car is off the road when its middle leaves these; a view of cars that have a width has to be wider than one of their middles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct View {
    pub(super) beyond: f64,
    pub(super) shoulder: f64,
}

impl View {
    /// How many units of the road are seen.
    pub(super) fn units(self) -> f64 {
        (DrivingScene::X.1 - DrivingScene::X.0) as f64 + 2.0 * self.beyond
    }

    /// Where a place is in a view of so many pixels.
    pub(super) fn across(self, x: f64, width: f64) -> f64 {
        width * (x - DrivingScene::X.0 as f64 + self.beyond) / self.units()
    }

    /// Verges and road in a frame, in its coordinates.
    pub(super) fn draw(self, drawing: &mut Drawing, frame: Frame) {
        drawing.rectangle(frame, &[("fill", VERGE)]);
        let [first, .., last] = DrivingScene::LANES.map(|x| x as f64);
        let (from, to) =
            (self.across(first - self.shoulder, frame.width), self.across(last + self.shoulder, frame.width));
        drawing.rectangle(Frame { x: frame.x + from, width: to - from, ..frame }, &[("fill", ROAD)]);
    }
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
