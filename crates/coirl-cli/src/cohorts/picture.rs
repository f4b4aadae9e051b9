//! What was tried when states were chosen: the likelihood of actions against the number of states.

use coirl_cohort::{CandidateScore, SelectionStage};
use kuva::TickFormat;
use kuva::backend::svg::SvgBackend;
use kuva::prelude::{Figure, Layout, LegendPosition, LinePlot, Plot, ScatterPlot};
use std::collections::BTreeMap;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 360.0;
/// Readable in black and white: dashes and widths differ as well.
const COLOURS: [&str; 6] = ["#111111", "#c2571a", "#1f6fb2", "#5b8c3a", "#8a4f9e", "#7a7a7a"];

/// The SVG; nothing where no grid was tried.
pub(crate) fn selection_picture(scores: &[CandidateScore]) -> Option<String> {
    let grid = || scores.iter().filter(|score| score.candidate.stage == SelectionStage::Grid);
    let mut by_subset: BTreeMap<usize, Vec<&CandidateScore>> = BTreeMap::new();
    grid().for_each(|score| by_subset.entry(score.candidate.measurements.len()).or_default().push(score));
    if by_subset.is_empty() {
        return None;
    }
    let panel = |label: &str, of: &dyn Fn(&CandidateScore) -> f64, with_legend: bool| {
        let mut plots: Vec<Plot> = Vec::new();
        for (i, (width, scores)) in by_subset.iter().enumerate() {
            let mut points: Vec<(f64, f64)> =
                scores.iter().map(|score| (score.candidate.clusters as f64, of(score))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let line = LinePlot::new().with_data(points).with_color(COLOURS[i % COLOURS.len()]);
            let line = line.with_stroke_width(if i % 2 == 0 { 2.2 } else { 1.6 });
            let line = match i % 3 {
                0 => line,
                1 => line.with_dashed(),
                _ => line.with_dotted(),
            };
            let name = if *width == 1 { "1 measurement".to_owned() } else { format!("{width} measurements") };
            plots.push(if with_legend { line.with_legend(name).into() } else { line.into() });
        }
        if let Some(chosen) = scores.iter().find(|score| score.chosen) {
            let point = ScatterPlot::new().with_data(vec![(chosen.candidate.clusters as f64, of(chosen))]);
            let point = point.with_color("#111111").with_size(6.0);
            plots.push(if with_legend { point.with_legend("chosen").into() } else { point.into() });
        }
        let layout = Layout::auto_from_plots(&plots)
            .with_log_x()
            .with_x_label("states")
            .with_y_label(label)
            .with_x_tick_format(TickFormat::Auto)
            .with_legend_position(LegendPosition::OutsideRightTop);
        (plots, layout)
    };
    let panels = [
        panel("negative log-likelihood of an action", &|score| score.negative_log_likelihood, false),
        panel(
            "actions per state, by those of shuffled stays",
            &|score| score.actions_per_state / score.actions_per_state_shuffled,
            true,
        ),
    ];
    let (plots, layouts): (Vec<Vec<Plot>>, Vec<Layout>) = panels.into_iter().unzip();
    let figure = Figure::new(1, 2).with_title("Choosing states, on validation stays").with_title_size(16);
    let figure = figure.with_cell_size(WIDTH, HEIGHT).with_plots(plots).with_layouts(layouts);
    Some(SvgBackend::new().render_scene(&figure.render()))
}
