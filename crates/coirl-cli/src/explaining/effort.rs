//! How much of an explanation is computed where nobody says: what takes some seconds, by counting plans and not by a clock, so that the same run gets
//! the same answer.

use coirl::agent::Agent;
use coirl::inspect::{ContextHelpsSettings, DeterminationSettings};
use coirl::learn::Problem;
use coirl::methods::Fitted;

/// Work that takes some seconds on two cores, in passes over an entry of the dynamics.
const SECONDS: f64 = 1.5e8;
/// What a plan costs beside its entries, and the sweeps that a pass over a network's parameters is worth.
const OVERHEAD: f64 = 5e3;
const PASSES_PER_PLAN: f64 = 3.0;
/// Products that bring directions of processes together, in some seconds.
const PRODUCTS: f64 = 5e9;
/// How many times as long fits may take as ranges.
const FITS: f64 = 4.0;
/// Fits on resampled demonstrations by default, and those without which an interval says nothing.
const BOOTSTRAP: usize = 50;
const FEWEST_FITS: usize = 20;
/// Steps towards the least loss, and entries, that are always made.
const FEWEST_STEPS: u64 = 20;
const FEWEST_ENTRIES: usize = 4;

/// What parts of an explanation cost, in plans.
pub(crate) struct Effort {
    /// Plans that take some seconds.
    affordable: f64,
    demonstrations: f64,
    /// Processes whose directions are brought together in some seconds.
    processes: usize,
    /// Plans of a fit, or what takes as long.
    fit: f64,
}

impl Effort {
    pub(crate) fn of(problem: &Problem<'_>, fitted: &Fitted) -> Self {
        let model = problem.model();
        let entries = model.mdp(problem.context(0)).map_or(0, |mdp| mdp.kernel().n_entries());
        let plan = entries as f64 + OVERHEAD;
        let passes = match &fitted.agent {
            Agent::Neural(mapping) => {
                fitted.demonstrations as f64 * mapping.network().architecture().n_parameters() as f64
            }
            _ => 0.0,
        };
        Self {
            affordable: SECONDS / plan,
            demonstrations: problem.len() as f64,
            processes: (PRODUCTS / (4.0 * model.n_features() as f64 * (problem.n_parameters() as f64).powi(2)))
                as usize,
            fit: fitted.planner_calls as f64 + PASSES_PER_PLAN * passes / plan,
        }
    }

    /// For so many entries, or as many as are affordable.
    pub(crate) fn determination(&self, typed: Option<usize>) -> DeterminationSettings {
        let usual = DeterminationSettings::default();
        if let Some(max_entries) = typed {
            return DeterminationSettings { max_entries, ..usual };
        }
        let rounds = self.affordable / self.demonstrations;
        DeterminationSettings {
            max_entries: ((rounds / 2.0) as usize).clamp(FEWEST_ENTRIES, usual.max_entries),
            max_steps: (rounds as u64).clamp(FEWEST_STEPS, usual.max_steps),
            max_plans: usual.max_plans.min(self.affordable as usize),
            max_processes: self.processes.clamp(1, usual.max_processes),
            ..usual
        }
    }

    /// So many fits on resampled demonstrations, or as many as are affordable; none where they would say nothing.
    pub(crate) fn bootstrap(&self, typed: Option<usize>) -> usize {
        typed.unwrap_or_else(|| match ((FITS * self.affordable / self.fit) as usize).min(BOOTSTRAP) {
            ..FEWEST_FITS => 0,
            fits => fits,
        })
    }

    /// So many parts, or the usual number where two fits for each are affordable.
    pub(crate) fn folds(&self, typed: Option<usize>) -> usize {
        let usual = ContextHelpsSettings::default().folds;
        typed.unwrap_or(if 2.0 * usual as f64 * self.fit <= FITS * self.affordable { usual } else { 0 })
    }

    /// What was cut short although nobody asked for it, with what does it in full. Bootstrap and folds are given as typed and as used.
    pub(crate) fn shortened(
        &self,
        determination: &DeterminationSettings,
        linear: bool,
        bootstrap: (Option<usize>, usize),
        folds: (Option<usize>, usize),
    ) -> Vec<String> {
        let usual = DeterminationSettings::default();
        let mut told = Vec::new();
        if linear && determination.max_plans < usual.max_plans {
            told.push(format!(
                "ranges were looked for in few plans, and can only be too wide; --entries {} takes the time it needs",
                usual.max_entries
            ));
        }
        if let (true, None, used @ ..BOOTSTRAP) = (linear, bootstrap.0, bootstrap.1) {
            told.push(format!("{used} fits on resampled demonstrations; --bootstrap {BOOTSTRAP} makes more"));
        }
        if let (None, 0) = folds {
            let usual = ContextHelpsSettings::default().folds;
            told.push(format!(
                "whether the context helps was not looked at; --folds {usual} does, with {} fits",
                2 * usual
            ));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_left_out_unless_asked_for_and_told() {
        let small = Effort { affordable: 30_000.0, demonstrations: 100.0, processes: 1000, fit: 200.0 };
        let usual = small.determination(None);
        assert_eq!((small.bootstrap(None), small.folds(None)), (50, 5));
        assert_eq!((usual.max_entries, usual.max_steps, usual.max_plans), (150, 200, 30_000));
        let large = Effort { affordable: 30_000.0, demonstrations: 9000.0, processes: 0, fit: 20_000.0 };
        assert_eq!((large.bootstrap(None), large.folds(None)), (0, 0));
        assert_eq!((large.bootstrap(Some(7)), large.folds(Some(3))), (7, 3));
        assert_eq!(large.determination(Some(300)), DeterminationSettings::default());
        let few = large.determination(None);
        assert_eq!((few.max_entries, few.max_steps, few.max_processes), (FEWEST_ENTRIES, FEWEST_STEPS, 1));
        let told = large.shortened(&few, true, (None, 0), (None, 0));
        assert!(told.len() == 3 && told[1].contains("--bootstrap 50") && told[2].contains("--folds 5"), "{told:?}");
        assert!(small.shortened(&DeterminationSettings::default(), true, (None, 50), (None, 5)).is_empty());
        assert!(large.shortened(&DeterminationSettings::default(), true, (Some(7), 7), (Some(0), 0)).is_empty());
    }
}
