//! Standard doses: what a level of treatment means in the table.
//!
//! A level is a quartile of the non-zero doses in the source of the simulator, and quartiles of a synthetic table could not give levels back
//! that are not equally frequent. Each level therefore has one amount, of the size of that quartile's median: a binning that keeps four
//! distinct amounts apart recovers every action.

use super::columns::{FLUIDS, MEDIAN_VASOPRESSOR, MOST_VASOPRESSOR, Row};
use super::settings::Synthetic;
use coirl::model::ActionId;

/// Levels of either treatment, none included.
const N_LEVELS: usize = 5;

/// Intravenous fluids of each level, in mL over four hours.
const FLUIDS_ML: [f64; N_LEVELS] = [0.0, 30.0, 85.0, 320.0, 950.0];
/// Vasopressors of each level, in µg/kg/min of noradrenaline equivalent.
const VASOPRESSOR: [f64; N_LEVELS] = [0.0, 0.04, 0.14, 0.27, 0.79];

/// The doses of an action. One rate is given for the whole bloc: the median vasopressor dose is the highest.
pub(super) fn write(row: &mut Row, action: ActionId) {
    row[FLUIDS] = FLUIDS_ML[action.index() / N_LEVELS % N_LEVELS];
    row[MOST_VASOPRESSOR] = VASOPRESSOR[action.index() % N_LEVELS];
    row[MEDIAN_VASOPRESSOR] = row[MOST_VASOPRESSOR];
}

impl Synthetic {
    /// The action whose doses a row has, `5·fluid + vaso`; none for amounts that are no standard doses.
    pub fn action_of(row: &Row) -> Option<ActionId> {
        let level = |doses: &[f64; N_LEVELS], dose: f64| doses.iter().position(|standard| *standard == dose);
        let (fluids, vasopressor) = (level(&FLUIDS_ML, row[FLUIDS])?, level(&VASOPRESSOR, row[MOST_VASOPRESSOR])?);
        Some(ActionId((N_LEVELS * fluids + vasopressor) as u32))
    }

    /// The action whose doses are nearest to these amounts, in mL and µg/kg/min.
    pub fn nearest_action(fluids_ml: f64, vasopressor: f64) -> ActionId {
        let level = |doses: &[f64; N_LEVELS], dose: f64| {
            let distance = |level: &usize| (doses[*level] - dose).abs();
            (0..N_LEVELS).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or_default()
        };
        ActionId((N_LEVELS * level(&FLUIDS_ML, fluids_ml) + level(&VASOPRESSOR, vasopressor)) as u32)
    }
}
