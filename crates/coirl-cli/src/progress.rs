//! A bar on standard error with the time left; nothing where standard error is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

const PLANNING: &str = "planning {bar:30} {human_pos} of {human_len}, {eta} left";
const STAGE: &str = "{msg} {bar:30} {human_pos} of {human_len}, {eta} left";
const EXPERIMENT: &str = "{msg} {bar:30} {percent} %, {eta} left";
const COUNTED: &str = "{msg} {spinner} {human_pos} {prefix}, {elapsed} gone";
const LEARNING: &str = "learning {bar:30} step {human_pos} of {human_len}, loss {msg}, {eta} left";
const LEARNING_ON: &str = "learning {spinner} step {human_pos}, loss {msg}, {elapsed} gone";

/// A bar over so many plans, hidden when quiet.
pub(crate) fn bar(total: usize, quiet: bool) -> ProgressBar {
    if quiet || total < 2 {
        return ProgressBar::hidden();
    }
    drawn(Some(total as u64), PLANNING)
}

/// A bar over the parts of a longer piece of work.
pub(crate) fn stage(what: &'static str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    drawn(None, STAGE).with_message(what)
}

/// A bar over an experiment.
pub(crate) fn experiment(what: String, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    drawn(None, EXPERIMENT).with_message(what)
}

/// A bar over the steps of a learner; where their number is not known, a count.
pub(crate) fn learning(steps: Option<u64>, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = drawn(steps, if steps.is_some() { LEARNING } else { LEARNING_ON });
    bar.set_message("not known yet");
    bar
}

/// A count of something whose number is not known.
pub(crate) fn counted(what: &'static str, of: &'static str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    drawn(None, COUNTED).with_message(what).with_prefix(of)
}

fn drawn(total: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
