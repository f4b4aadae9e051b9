//! The grid world from above: cells shaded by their reward, with the best action and what it is worth to be there.

use super::arrow::Direction;
use super::drawing::{Anchor, Drawing, Frame, INK, Lettering};
use crate::failure::Failure;
use crate::numbers::short;
use coirl::model::Cmdp;
use coirl::plan::Plan;

const CELL: f64 = 78.0;
const MARGIN: f64 = 16.0;
const TOP: f64 = 30.0;
const KEY: f64 = 40.0;
/// More cells are no picture any more.
const MOST_CELLS: usize = 900;
/// Of the worst and of the best cell; without reward cells are white. Light enough for text in both.
const ENDS: [[f64; 3]; 2] = [[240.0, 163.0, 110.0], [125.0, 185.0, 225.0]];

/// The SVG of a grid of some width, for the rewards of its cells.
pub(crate) fn grid_picture(model: &Cmdp, width: usize, rewards: &[f64], plan: &Plan) -> Result<String, Failure> {
    let n_cells = model.n_states();
    if n_cells > MOST_CELLS {
        return Err(Failure::refused(format!("a grid of {n_cells} cells; expected at most {MOST_CELLS} to draw")));
    }
    let actions = plan.policy.actions().unwrap_or_default();
    let most = rewards.iter().fold(0.0_f64, |most, reward| most.max(reward.abs()));
    let mut drawing = Drawing::default();
    drawing.text((MARGIN, MARGIN + 10.0), Anchor::Start, Lettering::bold(14.0), &model.names().model);
    for (cell, reward) in rewards.iter().enumerate() {
        let (x, y) = (MARGIN + CELL * (cell % width) as f64, MARGIN + TOP + CELL * (cell / width) as f64);
        let fill = shade(if most > 0.0 { reward / most } else { 0.0 });
        let frame = Frame { x, y, width: CELL, height: CELL };
        drawing.rectangle(frame, &[("fill", &fill), ("stroke", "#9a9a9a"), ("stroke-width", "1")]);
        drawing.text((x + 6.0, y + 15.0), Anchor::Start, Lettering::pale(10.5), &short(*reward));
        let value = plan.values.get(cell).copied().unwrap_or(0.0);
        let shown = if value.abs() < 1000.0 { format!("{value:.2}") } else { short(value) };
        drawing.text((x + CELL / 2.0, y + CELL - 9.0), Anchor::Middle, Lettering::bold(12.0), &shown);
        if let Some(name) = actions.get(cell).and_then(|action| model.names().actions.get(action.index())) {
            Direction::of_action(name).draw(&mut drawing, cell, (x + CELL / 2.0, y + CELL / 2.0 - 1.0), 30.0, INK);
        }
    }
    let (wide, tall) = (CELL * width as f64, CELL * n_cells.div_ceil(width.max(1)) as f64);
    let bottom = MARGIN + TOP + tall;
    let key = ["arrow: best action; bold: value of the cell", "corner and shade: its reward, blue is good"];
    for (i, line) in key.iter().enumerate() {
        drawing.text((MARGIN, bottom + 18.0 + 15.0 * i as f64), Anchor::Start, Lettering::pale(11.0), line);
    }
    let widest = key.iter().map(|line| Lettering::pale(11.0).width(line)).fold(wide, f64::max);
    Ok(drawing.finish(widest + 2.0 * MARGIN, bottom + KEY + MARGIN / 2.0, "A grid world with its best actions"))
}

/// White for nothing, towards one of the ends for −1 and 1.
fn shade(share: f64) -> String {
    let end = ENDS[usize::from(share > 0.0)];
    let [red, green, blue] = end.map(|channel| (255.0 + share.abs().min(1.0) * (channel - 255.0)).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}
