//! A panel of lines: means over seeds with bands of one standard deviation, over axes at the left and below.

use super::axis::Axis;
use super::drawing::{Anchor, Drawing, Frame, Lettering, number, points};
use super::style::Style;
use coirl_experiments::{Axis as Kind, Picture, Point};

/// The area of the axes.
const PLOT: (f64, f64) = (300.0, 210.0);
/// Data stay this far away from the border of the plot, so that markers are whole.
const INSET: f64 = 7.0;
/// From the top of a panel to its plot: what it shows is written there.
pub(super) const TOP: f64 = 28.0;
/// From the plot to the end of the panel, with ticks and the name of x.
pub(super) const BOTTOM: f64 = 42.0;
/// Between a plot and the numbers beside it.
const GAP: f64 = 7.0;
const RIGHT: f64 = 14.0;
pub(super) const TICK: Lettering = Lettering::plain(11.0);
pub(super) const CAPTION: Lettering = Lettering::bold(12.0);
pub(super) const LABEL: Lettering = Lettering::plain(12.0);
pub(super) const GRID: &str = "#e4e4e4";
pub(super) const AXIS: &str = "#444444";
/// Markers on a line with more points than that are spread over it.
const MARKERS: usize = 8;

/// A part of a figure, in its own coordinates.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) drawing: Drawing,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Where data are drawn.
    #[cfg_attr(not(test), expect(dead_code, reason = "what the legend may not cover"))]
    pub(super) plot: Frame,
}

/// A line with its points.
#[derive(Debug, Clone)]
pub(super) struct Series<'a> {
    pub(super) style: &'a Style,
    pub(super) points: &'a [Point],
}

/// From numbers to pixels of the plot.
struct Canvas<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

impl Canvas<'_> {
    fn across(&self, x: f64) -> Option<f64> {
        self.x.place(x).map(|place| INSET + place * (PLOT.0 - 2.0 * INSET))
    }

    fn down(&self, y: f64) -> Option<f64> {
        // What is far outside is drawn just outside.
        self.y.place(y).map(|place| PLOT.1 - INSET - place.clamp(-9.0, 10.0) * (PLOT.1 - 2.0 * INSET))
    }

    fn pixel(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.down(y)?))
    }
}

/// The panel; nothing where no point can be drawn.
pub(super) fn lines(picture: &Picture, series: &[Series<'_>]) -> Option<Panel> {
    let x_axis = x_axis(picture, series)?;
    let y_axis = y_axis(picture, series)?;
    let ticks = y_axis.ticks();
    let left = GAP + ticks.iter().map(|(_, label)| TICK.width(label)).fold(20.0, f64::max);
    let plot = Frame { x: left, y: TOP, width: PLOT.0, height: PLOT.1 };
    let canvas = Canvas { x: &x_axis, y: &y_axis };
    let mut drawing = Drawing::default();
    drawing.text((0.0, 12.0), Anchor::Start, CAPTION, &picture.y);
    for (y, label) in &ticks {
        let Some(down) = canvas.down(*y).map(|down| plot.y + down) else { continue };
        drawing.line((plot.x, down), (plot.right(), down), GRID, 1.0);
        drawing.text((plot.x - GAP, down + 4.0), Anchor::End, TICK, label);
    }
    drawing.clipped(plot, |inside| {
        series.iter().for_each(|series| band(inside, &canvas, series));
        series.iter().for_each(|series| line(inside, &canvas, series));
        let n = series.len();
        series.iter().enumerate().for_each(|(i, series)| markers(inside, &canvas, series, (i as f64 + 0.5) / n as f64));
    });
    drawing.line((plot.x, plot.y), (plot.x, plot.bottom()), AXIS, 1.0);
    let bottom = |x: f64| canvas.across(x).map(|across| plot.x + across);
    horizontal_axis(&mut drawing, plot, &x_axis.ticks(), bottom, &picture.x);
    let width = (plot.right() + RIGHT).max(CAPTION.width(&picture.y));
    Some(Panel { drawing, width, height: plot.bottom() + BOTTOM, plot })
}

/// The line below a plot, with its ticks and its name.
pub(super) fn horizontal_axis(
    drawing: &mut Drawing,
    plot: Frame,
    ticks: &[(f64, String)],
    across: impl Fn(f64) -> Option<f64>,
    name: &str,
) {
    drawing.line((plot.x, plot.bottom()), (plot.right(), plot.bottom()), AXIS, 1.0);
    for (x, label) in ticks {
        let Some(across) = across(*x) else { continue };
        drawing.line((across, plot.bottom()), (across, plot.bottom() + 4.0), AXIS, 1.0);
        drawing.text((across, plot.bottom() + 17.0), Anchor::Middle, TICK, label);
    }
    drawing.text((plot.x + plot.width / 2.0, plot.bottom() + 35.0), Anchor::Middle, LABEL, name);
}

fn all<'a>(series: &'a [Series<'_>]) -> impl Iterator<Item = &'a Point> {
    series.iter().flat_map(|series| series.points)
}

fn x_axis(picture: &Picture, series: &[Series<'_>]) -> Option<Axis> {
    let kind = if picture.log_x { Kind::Log } else { Kind::Linear };
    let most = all(series).map(|point| point.x).fold(0.0, f64::max);
    // What begins near zero is drawn from zero.
    let zero = all(series).all(|point| point.x >= 0.0) && all(series).any(|point| point.x < 0.2 * most);
    let zero = (zero && !picture.log_x).then_some(0.0);
    Axis::around(kind, all(series).map(|point| point.x).chain(zero))
}

fn y_axis(picture: &Picture, series: &[Series<'_>]) -> Option<Axis> {
    if let Some(axis) = picture.range.and_then(|range| Axis::over(picture.scale, range)) {
        return Some(axis);
    }
    let means = || all(series).map(|point| point.mean);
    let (least, most) = (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max));
    let spread = all(series).flat_map(|point| [point.mean - point.deviation, point.mean + point.deviation]);
    match picture.scale {
        // Bands do not make shares beyond none and all worth showing, nor the depths that logarithms reach.
        Kind::Percent => Axis::around(Kind::Percent, spread.map(|y| y.clamp(least.min(0.0), most.max(1.0)))),
        Kind::Log => Axis::around(Kind::Log, means().chain(spread.filter(|y| *y > most))),
        Kind::Linear => {
            let zero = (least >= 0.0 && least < 0.5 * most).then_some(0.0);
            Axis::around(Kind::Linear, spread.map(|y| y.max(least.min(0.0))).chain(zero))
        }
    }
}

fn band(drawing: &mut Drawing, canvas: &Canvas<'_>, series: &Series<'_>) {
    // Points that have no place leave their part of the band out; a lower edge without one is far below.
    let drawn = series.points.iter().filter(|point| canvas.pixel(point.x, point.mean).is_some());
    let drawn: Vec<&Point> = drawn.collect();
    if drawn.iter().all(|point| !(point.deviation > 0.0)) || drawn.len() < 2 {
        return;
    }
    let below = PLOT.1 + 10.0;
    let upper = drawn.iter().filter_map(|point| canvas.pixel(point.x, point.mean + point.deviation));
    let lower = drawn.iter().rev().filter_map(|point| {
        Some((canvas.across(point.x)?, canvas.down(point.mean - point.deviation).unwrap_or(below)))
    });
    let corners = points(upper.chain(lower));
    let attributes = [("points", &*corners), ("fill", &series.style.colour), ("fill-opacity", "0.14")];
    drawing.shape("polygon", &attributes);
}

fn line(drawing: &mut Drawing, canvas: &Canvas<'_>, series: &Series<'_>) {
    let pixels: Vec<(f64, f64)> = series.points.iter().filter_map(|point| canvas.pixel(point.x, point.mean)).collect();
    if pixels.len() > 1 {
        stroke(drawing, &pixels, series.style);
    }
}

/// A line through some pixels.
pub(super) fn stroke(drawing: &mut Drawing, pixels: &[(f64, f64)], style: &Style) {
    let (through, width) = (points(pixels.iter().copied()), number(style.width));
    let mut attributes = vec![
        ("points", &*through),
        ("fill", "none"),
        ("stroke", &*style.colour),
        ("stroke-width", &*width),
        ("stroke-linejoin", "round"),
    ];
    if !style.dashes.is_empty() {
        attributes.push(("stroke-dasharray", style.dashes));
    }
    drawing.shape("polyline", &attributes);
}

/// Markers, at all points of a short line; those of several long lines are shifted against each other.
fn markers(drawing: &mut Drawing, canvas: &Canvas<'_>, series: &Series<'_>, shift: f64) {
    let pixels: Vec<(f64, f64)> = series.points.iter().filter_map(|point| canvas.pixel(point.x, point.mean)).collect();
    let mut mark = |at: (f64, f64)| series.style.marker.draw(drawing, at, &series.style.colour, series.style.hollow);
    if pixels.len() <= MARKERS + MARKERS / 2 {
        pixels.into_iter().for_each(mark);
        return;
    }
    let (first, last) = (pixels[0].0, pixels[pixels.len() - 1].0);
    for k in 0..MARKERS {
        let wanted = first + (last - first) * (k as f64 + shift) / MARKERS as f64;
        let nearest = pixels.iter().min_by(|a, b| (a.0 - wanted).abs().total_cmp(&(b.0 - wanted).abs()));
        nearest.copied().into_iter().for_each(&mut mark);
    }
}
