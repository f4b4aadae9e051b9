//! A bar on standard error with the time left; nothing where standard error is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

const TEMPLATE: &str = "planning {bar:30} {human_pos} of {human_len}, {eta} left";

/// A bar over so many plans, hidden when quiet.
pub(crate) fn bar(total: usize, quiet: bool) -> ProgressBar {
    if quiet || total < 2 {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr()).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
