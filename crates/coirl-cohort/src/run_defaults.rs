//! Defaults of runs on cohorts, where demonstrations are many and recorded actions are what counts.

use coirl::learn::Watched;
use coirl::methods::{Method, Settings};

/// Steps between two records: a record plans for the validation stays, which are some ten batches.
const RECORD_EVERY: u64 = 10;
/// Records without a better one after which the choice model stops. Each of its steps sees all training stays and it begins near where it will end, so
/// that the ten records that methods of small batches are given would cost hours on large tables and gain nothing that validation stays show.
const PATIENCE_OF_CHOICE: u64 = 2;

/// The settings of a run on the stays of a cohort: early stopping by the share of recorded actions that the agent would take, and no loss
/// on every training stay in the records, which costs more than what is learned. What was set stays.
pub fn run_defaults(mut settings: Settings, validated: bool) -> Settings {
    settings.record_every.get_or_insert(RECORD_EVERY);
    settings.record_loss.get_or_insert(false);
    if validated {
        settings.stop.watched.get_or_insert(Watched::Accuracy);
        if matches!(settings.method, Method::Choice(_)) {
            settings.stop.patience.get_or_insert(PATIENCE_OF_CHOICE);
        }
    }
    settings
}
