//! A driver's policy from above: where car A steers for every place of both cars, a panel for each lane of car B.

use super::arrow::Direction;
use super::drawing::{Anchor, Drawing, Frame, INK, Lettering};
use super::road::{CAR_B, COLLISION, View, chosen_speed, reward_in_words, speed_in_words};
use coirl::domains::DrivingScene;
use coirl::model::{Cmdp, Mdp};
use coirl::plan::Policy;

/// A column for each x of car A, a row for each y of car B.
const CELL: (f64, f64) = (17.0, 24.0);
const STEPS: (i64, i64) = (5, 20);
/// Half a column on either side.
const CELLS: View = View { beyond: 2.5, shoulder: 2.5 };
const MARGIN: f64 = 16.0;
const TOP: f64 = 64.0;
const LEFT: f64 = 42.0;
const BETWEEN: f64 = 22.0;
const LANE_NAMES: [&str; 3] = ["left", "middle", "right"];
/// Arrows where car B cannot be at this speed.
const IDLE: &str = "#b4b4ba";

/// The SVG for the speed that the policy chooses; nothing where a policy is not one of this domain.
pub(crate) fn driving_picture(model: &Cmdp, mdp: &Mdp<'_>, weights: &[f64], policy: &Policy) -> Option<String> {
    let (speed, actions) = (chosen_speed(mdp, policy)?, policy.actions()?);
    let columns = (DrivingScene::X.1 - DrivingScene::X.0) / STEPS.0 + 1;
    let rows = (DrivingScene::Y.1 - DrivingScene::Y.0) / STEPS.1 + 1;
    let (wide, tall) = (columns as f64 * CELL.0, rows as f64 * CELL.1);
    let mut drawing = Drawing::default();
    let title = format!("Where the driver steers; speed chosen: {}", speed_in_words(speed));
    drawing.text((MARGIN, MARGIN + 11.0), Anchor::Start, Lettering::bold(14.0), &title);
    let reward = reward_in_words(model, weights);
    drawing.text((MARGIN, MARGIN + 30.0), Anchor::Start, Lettering::pale(11.5), &reward);
    let frames: Vec<Frame> = (0..DrivingScene::LANES.len())
        .map(|lane| Frame {
            x: MARGIN + LEFT + lane as f64 * (wide + BETWEEN),
            y: MARGIN + TOP,
            width: wide,
            height: tall,
        })
        .collect();
    for (lane, frame) in frames.iter().enumerate() {
        let caption = format!("car B in the {} lane", LANE_NAMES[lane]);
        drawing.text((frame.x + wide / 2.0, frame.y - 8.0), Anchor::Middle, Lettering::bold(11.5), &caption);
        CELLS.draw(&mut drawing, *frame);
        let x = frame.x + CELL.0 * ((DrivingScene::LANES[lane] - DrivingScene::X.0) / STEPS.0) as f64;
        let band = Frame { x, width: CELL.0, ..*frame };
        drawing.rectangle(band, &[("fill", CAR_B), ("fill-opacity", "0.28")]);
        for x in (DrivingScene::X.0..=DrivingScene::X.1).step_by(20) {
            let across = frame.x + CELL.0 * (((x - DrivingScene::X.0) / STEPS.0) as f64 + 0.5);
            drawing.text((across, frame.bottom() + 14.0), Anchor::Middle, Lettering::plain(10.5), &x.to_string());
        }
        let name = "x of car A";
        drawing.text((frame.x + wide / 2.0, frame.bottom() + 30.0), Anchor::Middle, Lettering::plain(11.5), name);
    }
    for (state, scene) in (1..).zip(DrivingScene::all()).filter(|(_, scene)| scene.speed == speed) {
        let (Some(frame), Some(action)) = (frames.get(scene.lane), actions.get(state)) else { continue };
        let (column, row) = ((scene.x - DrivingScene::X.0) / STEPS.0, (scene.y - DrivingScene::Y.0) / STEPS.1);
        let corner = (frame.x + CELL.0 * column as f64, frame.y + CELL.1 * row as f64);
        if scene.collides() {
            let cell = Frame { x: corner.0, y: corner.1, width: CELL.0, height: CELL.1 };
            drawing.rectangle(cell, &[("fill", COLLISION), ("fill-opacity", "0.3")]);
        }
        let occurs = (scene.y - DrivingScene::Y.0) % scene.advance() == 0;
        let direction =
            model.names().actions.get(action.index()).map_or(Direction::Stay, |name| Direction::of_action(name));
        let middle = (corner.0 + CELL.0 / 2.0, corner.1 + CELL.1 / 2.0);
        direction.draw(&mut drawing, state, middle, 13.0, if occurs { INK } else { IDLE });
    }
    if let Some(first) = frames.first() {
        for y in (DrivingScene::Y.0..=DrivingScene::Y.1).step_by(STEPS.1 as usize) {
            let down = first.y + CELL.1 * (((y - DrivingScene::Y.0) / STEPS.1) as f64 + 0.5) + 4.0;
            drawing.text((first.x - 7.0, down), Anchor::End, Lettering::plain(10.5), &y.to_string());
        }
        drawing.text((MARGIN, first.y - 8.0), Anchor::Start, Lettering::plain(10.5), "y of B");
    }
    let right = frames.last().map_or(0.0, |frame| frame.right());
    let bottom = MARGIN + TOP + tall + 52.0;
    let key = "red: a collision; grey: road; green: off the road; orange: the lane of car B; pale arrows: car B is never there at this speed";
    drawing.text((MARGIN, bottom), Anchor::Start, Lettering::pale(11.0), key);
    Some(drawing.finish(right + MARGIN, bottom + MARGIN, "Where a driver steers, seen from above"))
}
