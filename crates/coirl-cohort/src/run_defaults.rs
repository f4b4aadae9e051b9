//! Defaults of runs on cohorts, where demonstrations are many and recorded actions are what counts.

use coirl::learn::{Settings, Watched};

/// Steps between two records: a record plans for the validation stays, which are some ten batches.
const RECORD_EVERY: u64 = 10;

/// The settings of a run on the stays of a cohort: early stopping by the share of recorded actions that the agent would take, and no loss
/// on every training stay in the records, which costs more than what is learned. What was set stays.
pub fn run_defaults<M>(mut settings: Settings<M>, validated: bool) -> Settings<M> {
    settings.record_every.get_or_insert(RECORD_EVERY);
    settings.record_loss.get_or_insert(false);
    if validated {
        settings.stop.watched.get_or_insert(Watched::Accuracy);
    }
    settings
}
