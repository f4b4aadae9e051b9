//! Watches a run: progress, checkpoints, and the wish to stop.

use crate::numbers::short;
use crate::progress;
use coirl::artifact::write_checkpoint;
use coirl::learn::{Record, Recorder, Snapshot};
use indicatif::ProgressBar;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The name of a checkpoint in the output folder.
pub(crate) const CHECKPOINT: &str = "checkpoint.json";
/// What shells report for a program that ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C asks the run to stop after its step, and the second ends the program.
pub(crate) fn on_interrupt() {
    // Where no handler can be set, Ctrl-C ends the program as it always did.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
    });
}

/// Whether somebody asked to stop.
pub(crate) fn stop_wanted() -> bool {
    STOP.load(Ordering::SeqCst)
}

pub(crate) struct Watcher {
    checkpoint: PathBuf,
    quiet: bool,
    between_checkpoints: Duration,
    /// Steps after which to stop as if by Ctrl-C.
    stop_after: Option<u64>,
    bar: ProgressBar,
    saved: Instant,
}

impl Watcher {
    pub(crate) fn new(
        checkpoint: PathBuf,
        between_checkpoints: Duration,
        stop_after: Option<u64>,
        quiet: bool,
    ) -> Self {
        let (bar, saved) = (ProgressBar::hidden(), Instant::now());
        Self { checkpoint, quiet, between_checkpoints, stop_after, bar, saved }
    }
}

impl Recorder for Watcher {
    fn begin(&mut self, steps: Option<u64>) {
        self.bar = progress::learning(steps, self.quiet);
    }

    fn step(&mut self, record: &Record, snapshot: &Snapshot<'_>) -> coirl::Result<ControlFlow<()>> {
        self.bar.inc(1);
        if let Some(loss) = record.loss {
            self.bar.set_message(short(loss));
        }
        let stop = stop_wanted() || self.stop_after == Some(record.step);
        if stop || self.saved.elapsed() >= self.between_checkpoints {
            write_checkpoint(&self.checkpoint, &snapshot.checkpoint()?)?;
            self.saved = Instant::now();
        }
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
