//! When a rare action is taken, and when an agent would: two curves by steps since the clock began.

use coirl_cohort::agreement::{Foreseen, HazardBin};
use kuva::TickFormat;
use kuva::backend::svg::SvgBackend;
use kuva::prelude::{Figure, Layout, LegendPosition, LinePlot, Plot};

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 300.0;

/// The SVG; nothing for fewer than two points.
pub(super) fn hazard_picture(own: &Foreseen) -> Option<String> {
    if own.hazard.len() < 2 {
        return None;
    }
    let points = |of: fn(&HazardBin) -> f64| -> Vec<(f64, f64)> {
        own.hazard.iter().map(|bin| (0.5 * (bin.steps[0] + bin.steps[1]) as f64, of(bin))).collect()
    };
    let recorded = LinePlot::new().with_data(points(|bin| bin.recorded)).with_legend("recorded");
    let agent = LinePlot::new().with_data(points(|bin| bin.foreseen)).with_legend("agent");
    let plots: Vec<Plot> = vec![
        recorded.with_color("#111111").with_stroke_width(2.2).into(),
        agent.with_color("#c2571a").with_stroke_width(2.0).with_dashed().into(),
    ];
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let layout = Layout::auto_from_plots(&plots)
        .with_x_label("steps since the start, or since it was last taken")
        .with_y_label("of the steps at risk")
        .with_x_tick_format(TickFormat::Auto)
        .with_y_tick_format(TickFormat::Custom(std::sync::Arc::new(percent)))
        .with_legend_position(LegendPosition::OutsideRightTop);
    let figure = Figure::new(1, 1).with_title(own.event.as_str()).with_title_size(14).with_cell_size(WIDTH, HEIGHT);
    Some(SvgBackend::new().render_scene(&figure.with_plots(vec![plots]).with_layouts(vec![layout]).render()))
}
