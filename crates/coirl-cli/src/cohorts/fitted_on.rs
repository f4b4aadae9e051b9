//! A run of `coirl fit` that learned from a cohort.

use super::folder::CohortFolder;
use crate::failure::Failure;
use crate::fitting::Run;
use coirl::methods::Fitted;
use std::path::Path;

/// What was learned, and from which cohort.
pub(crate) struct CohortRun {
    pub(crate) fitted: Fitted,
    pub(crate) cohort: CohortFolder,
}

impl CohortRun {
    /// Opens an output folder of `coirl fit`. Refuses runs that learned from something else, also where the cohort was built again since.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let run = Run::finished(path)?;
        let cohort = run
            .cohort()
            .ok_or_else(|| Failure::in_file(path, "did not learn from a cohort; `coirl fit COHORT --out RUN` does"))?;
        run.data()?;
        Ok(Self { cohort: CohortFolder::open(cohort)?, fitted: run.fitted })
    }
}
