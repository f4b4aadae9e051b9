//! The run as a picture: the loss against the steps, or the distance from the expert or how well actions are explained where there is
//! no loss, the share of validation actions where these are watched, and the value against the expert's where a truth is known.

use coirl::learn::Record;
use kuva::TickFormat;
use kuva::backend::svg::SvgBackend;
use kuva::prelude::{Figure, Layout, LegendPosition, LinePlot, Plot};

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 340.0;
/// Shares that lie closer together are told apart by one decimal of a per cent more each.
const CLOSE: [f64; 2] = [0.1, 0.01];

/// The SVG; nothing where there is nothing to draw. Lines differ in their dashes and not only in colour, so that it can be printed.
pub(crate) fn picture(history: &[Record], title: &str) -> Option<String> {
    let first = losses(history).or_else(|| likelihood(history));
    let panels: Vec<(Vec<Plot>, Layout)> = [first, accuracy(history), values(history)].into_iter().flatten().collect();
    let columns = panels.len();
    if columns == 0 {
        return None;
    }
    let (plots, layouts): (Vec<Vec<Plot>>, Vec<Layout>) = panels.into_iter().unzip();
    let figure = Figure::new(1, columns).with_title(title).with_title_size(16).with_cell_size(WIDTH, HEIGHT);
    Some(SvgBackend::new().render_scene(&figure.with_plots(plots).with_layouts(layouts).render()))
}

/// Losses, or distances where no mapping has a loss, on a logarithmic axis where that is possible.
fn losses(history: &[Record]) -> Option<(Vec<Plot>, Layout)> {
    let series = [
        ("on the demonstrations", points(history, |record| record.loss)),
        ("validation", points(history, |record| record.loss.and(record.validation_loss))),
        ("test contexts", points(history, |record| record.score.and_then(|score| score.held_out_loss))),
    ];
    let distances = points(history, |record| record.distance);
    let lossless = series.iter().all(|(_, points)| points.is_empty());
    let (series, label) = if lossless && !distances.is_empty() {
        ([("mixed policy", distances), ("", Vec::new()), ("", Vec::new())], "distance from the expert's μ")
    } else {
        (series, "loss per ‖W‖")
    };
    let positive = series.iter().flat_map(|(_, points)| points).all(|point| point.1 > 0.0);
    let plots = lines(series);
    if plots.is_empty() {
        return None;
    }
    let layout = layout(&plots, label);
    let layout = if positive { layout.with_log_y() } else { layout };
    Some((plots, layout))
}

/// How well the demonstrated actions are explained.
fn likelihood(history: &[Record]) -> Option<(Vec<Plot>, Layout)> {
    let plots = lines([
        ("log-likelihood of an action", points(history, |record| record.log_likelihood)),
        ("validation", points(history, |record| record.log_likelihood.and(record.validation_loss).map(|loss| -loss))),
    ]);
    if plots.is_empty() {
        return None;
    }
    let told = || history.iter().filter_map(|record| record.log_likelihood).filter(|y| y.is_finite());
    let spread = told().fold(f64::NEG_INFINITY, f64::max) - told().fold(f64::INFINITY, f64::min);
    // As many decimals as tell the ticks apart.
    let decimals = if spread > 0.0 { (2.0 - spread.log10().floor()).clamp(2.0, 8.0) as usize } else { 3 };
    let format = TickFormat::Custom(std::sync::Arc::new(move |y: f64| format!("{y:.decimals$}")));
    let label = if plots.len() == 1 { "log-likelihood of an action" } else { "log-likelihood" };
    let layout = layout(&plots, label).with_y_tick_format(format);
    Some((plots, layout))
}

/// The share of the actions of validation demonstrations that the agent would take, of those that the model admits.
fn accuracy(history: &[Record]) -> Option<(Vec<Plot>, Layout)> {
    let series = [("same action as on validation", points(history, |record| record.validation_accuracy))];
    shares(series, "same action, of admitted steps")
}

fn values(history: &[Record]) -> Option<(Vec<Plot>, Layout)> {
    let series = [
        ("value above random / expert's", points(history, |record| record.score.map(|score| score.relative_value))),
        ("value / expert's value", points(history, |record| record.score.map(|score| score.value_ratio))),
        ("states with an optimal action", points(history, |record| record.score.map(|score| score.optimal_accuracy))),
    ];
    shares(series, "share")
}

/// Shares on an axis of per cent.
fn shares<const N: usize>(series: [(&str, Vec<(f64, f64)>); N], label: &str) -> Option<(Vec<Plot>, Layout)> {
    let heights = || series.iter().flat_map(|(_, points)| points).map(|point| point.1);
    let (least, most) = (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max));
    let plots = lines(series);
    if plots.is_empty() {
        return None;
    }
    // A flat line has nothing to be told apart.
    let decimals = CLOSE.iter().filter(|close| (f64::MIN_POSITIVE..**close).contains(&(most - least))).count();
    let percent = move |share: f64| format!("{:.decimals$} %", 100.0 * share);
    let format = TickFormat::Custom(std::sync::Arc::new(percent));
    let layout = layout(&plots, label).with_y_tick_format(format);
    Some((plots, layout))
}

fn points(history: &[Record], of: impl Fn(&Record) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |record: &Record| Some((record.step as f64, of(record).filter(|y| y.is_finite())?));
    history.iter().filter_map(point).collect()
}

/// A line per series that has points, told apart by colour, width and dashes.
fn lines<const N: usize>(series: [(&str, Vec<(f64, f64)>); N]) -> Vec<Plot> {
    let styled = |line: LinePlot, number: usize| match number {
        0 => line.with_color("#111111").with_stroke_width(2.2),
        1 => line.with_color("#c2571a").with_stroke_width(2.0).with_dashed(),
        _ => line.with_color("#1f6fb2").with_stroke_width(2.0).with_dotted(),
    };
    let filled: Vec<_> = series.into_iter().filter(|(_, points)| !points.is_empty()).collect();
    // A line on its own is what the axis says.
    let single = filled.len() == 1;
    let named = filled.into_iter().enumerate().map(|(i, (name, points))| {
        let line = LinePlot::new().with_data(points);
        styled(if single { line } else { line.with_legend(name) }, i).into()
    });
    named.collect()
}

fn layout(plots: &[Plot], y_label: &str) -> Layout {
    Layout::auto_from_plots(plots)
        // The legend takes the place below the axis.
        .with_y_label(format!("{y_label}, by step"))
        .with_x_tick_format(TickFormat::Auto)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
}
