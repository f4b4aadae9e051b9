//! A panel of single numbers: a row per method with its mean and standard deviation, and what the paper reports where it does.

use super::axis::Axis;
use super::drawing::{Anchor, Drawing, Frame, INK, Lettering, PALE_INK};
use super::marker::Marker;
use super::panel::{BOTTOM, CAPTION, GRID, LABEL, Panel, TOP, horizontal_axis};
use super::style::Style;
use coirl_experiments::{Axis as Kind, Picture, Point};

const WIDTH: f64 = 240.0;
const ROW: f64 = 30.0;
const INSET: f64 = 12.0;
const GAP: f64 = 10.0;
/// Half the height of the ends of an error bar.
const END: f64 = 3.5;
/// What the paper reports is drawn this far below ours.
const PAPER_BELOW: f64 = 8.0;
const NUMBER: Lettering = Lettering::pale(11.0);

/// A method with its number.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub(super) method: &'a str,
    pub(super) style: &'a Style,
    /// Nothing where this was not measured.
    pub(super) point: Option<Point>,
    /// Mean and standard deviation in the paper.
    pub(super) paper: Option<(f64, f64)>,
}

/// The panel, with the names of the methods where these are wanted; nothing where no number can be drawn.
pub(super) fn rows(picture: &Picture, rows: &[Row<'_>], named: bool) -> Option<Panel> {
    let pairs = |row: &Row<'_>| {
        let ours = row.point.map(|point| (point.mean, point.deviation));
        [ours, row.paper].into_iter().flatten().collect::<Vec<_>>()
    };
    let reached = rows.iter().flat_map(pairs).flat_map(|(mean, deviation)| [mean - deviation, mean + deviation]);
    let axis = picture.range.and_then(|range| Axis::over(picture.scale, range));
    let axis = axis.or_else(|| Axis::around(picture.scale, reached))?;
    let left = if named { GAP + rows.iter().map(|row| LABEL.width(row.method)).fold(0.0, f64::max) } else { 0.0 };
    let plot = Frame { x: left, y: TOP, width: WIDTH, height: ROW * rows.len() as f64 };
    let across = |x: f64| axis.place(x).map(|place| plot.x + INSET + place.clamp(-0.04, 1.04) * (WIDTH - 2.0 * INSET));

    let mut drawing = Drawing::default();
    drawing.text((plot.x, 12.0), Anchor::Start, CAPTION, &picture.y);
    let ticks = axis.ticks();
    for x in ticks.iter().filter_map(|(x, _)| across(*x)) {
        drawing.line((x, plot.y), (x, plot.bottom()), GRID, 1.0);
    }
    let mut widest = 0.0_f64;
    for (i, row) in rows.iter().enumerate() {
        let middle = plot.y + ROW * (i as f64 + 0.5);
        if named {
            drawing.text((plot.x - GAP, middle + 4.0), Anchor::End, LABEL, row.method);
        }
        if let Some((mean, deviation)) = row.paper {
            bar(&mut drawing, &across, (mean, deviation), middle + PAPER_BELOW, PALE_INK);
            let at = across(mean).map(|x| (x, middle + PAPER_BELOW));
            at.into_iter().for_each(|at| Marker::Diamond.draw(&mut drawing, at, PALE_INK, true));
        }
        if let Some(point) = row.point {
            bar(&mut drawing, &across, (point.mean, point.deviation), middle, &row.style.colour);
            let marker = if row.style.marker == Marker::None { Marker::Circle } else { row.style.marker };
            let at = across(point.mean).map(|x| (x, middle));
            at.into_iter().for_each(|at| marker.draw(&mut drawing, at, &row.style.colour, row.style.hollow));
            let shown = in_numbers(&point, picture.scale);
            drawing.text((plot.right() + GAP, middle + 4.0), Anchor::Start, NUMBER, &shown);
            widest = widest.max(NUMBER.width(&shown));
        }
        drawing.line((plot.x, plot.y + ROW * i as f64), (plot.right(), plot.y + ROW * i as f64), GRID, 1.0);
    }
    let at = rows.iter().find_map(|row| row.point).map_or(String::new(), |point| {
        let x = if point.x.fract() == 0.0 {
            crate::numbers::count(point.x as usize)
        } else {
            crate::numbers::short(point.x)
        };
        format!("{x} {}", picture.x)
    });
    horizontal_axis(&mut drawing, plot, &ticks, across, &at);
    let width = (plot.right() + GAP + widest).max(plot.x + CAPTION.width(&picture.y)) + GAP;
    Some(Panel { drawing, width, height: plot.bottom() + BOTTOM, plot })
}

/// An error bar; without a spread there is none.
fn bar(
    drawing: &mut Drawing,
    across: &impl Fn(f64) -> Option<f64>,
    (mean, deviation): (f64, f64),
    y: f64,
    colour: &str,
) {
    let (Some(from), Some(to)) = (across(mean - deviation), across(mean + deviation)) else { return };
    if deviation > 0.0 {
        drawing.line((from, y), (to, y), colour, 1.6);
        drawing.line((from, y - END), (from, y + END), colour, 1.6);
        drawing.line((to, y - END), (to, y + END), colour, 1.6);
    }
}

fn in_numbers(point: &Point, scale: Kind) -> String {
    let spread = |digits: String| if point.seeds > 1 { format!(" ± {digits}") } else { String::new() };
    match scale {
        Kind::Percent => {
            format!("{:.1}{} %", 100.0 * point.mean, spread(format!("{:.1}", 100.0 * point.deviation)))
        }
        Kind::Linear | Kind::Log => {
            format!("{}{}", crate::numbers::short(point.mean), spread(crate::numbers::short(point.deviation)))
        }
    }
}

/// The marks of a panel of rows, as a legend shows them.
pub(super) fn draw_key(drawing: &mut Drawing, at: (f64, f64), width: f64, paper: bool) {
    let (marker, colour) = if paper { (Marker::Diamond, PALE_INK) } else { (Marker::Circle, INK) };
    drawing.line((at.0, at.1), (at.0 + width, at.1), colour, 1.6);
    for x in [at.0, at.0 + width] {
        drawing.line((x, at.1 - END), (x, at.1 + END), colour, 1.6);
    }
    marker.draw(drawing, (at.0 + width / 2.0, at.1), colour, paper);
}
