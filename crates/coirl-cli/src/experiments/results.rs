//! What an experiment leaves behind: results without times, so that the same seed gives the same bytes.

use crate::destination::to_file;
use crate::failure::Failure;
use coirl::artifact::read_text;
use coirl_experiments::{Experiment, Judged, MeanCurve, Scale, SeedCurves, over_seeds};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The name of the file that all later steps read.
pub(crate) const RESULTS: &str = "results.json";
const TABLE: &str = "results.csv";
/// The names of what is kept.
pub(crate) const RESULT_FILES: [&str; 2] = [RESULTS, TABLE];

/// What is kept of an experiment: its settings and every seed. Means and verdicts follow from these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) name: String,
    /// Version of the program.
    pub(crate) version: String,
    pub(crate) scale: Scale,
    /// Files given instead of what is drawn, with the SHA-256 of their content.
    pub(crate) given: Vec<(String, String)>,
    pub(crate) settings: Experiment,
    pub(crate) runs: Vec<SeedCurves>,
}

/// An experiment with what it came to.
pub(crate) struct Results {
    pub(crate) kept: Kept,
    pub(crate) means: Vec<MeanCurve>,
    pub(crate) claims: Vec<Judged>,
}

/// As it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    kept: &'a Kept,
    means: &'a [MeanCurve],
    claims: &'a [Judged],
}

impl Results {
    pub(crate) fn of(kept: Kept) -> Self {
        let (means, claims) = (over_seeds(&kept.runs), kept.settings.judge(&kept.runs));
        Self { kept, means, claims }
    }

    /// Reads what was kept; means and verdicts are computed again.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = read_text(path, "results of an experiment")?;
        let kept: Kept = serde_json::from_str(&text).map_err(|error| Failure::in_file(path, error))?;
        Ok(Self::of(kept))
    }

    pub(crate) fn json(&self) -> Result<String, Failure> {
        let written = Written { kept: &self.kept, means: &self.means, claims: &self.claims };
        serde_json::to_string_pretty(&written).map_err(|error| Failure::from(std::io::Error::from(error)))
    }

    /// Writes results.json and results.csv.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let json = self.json()?;
        to_file(&folder.join(RESULTS), |file| Ok(writeln!(file, "{json}")?))?;
        to_file(&folder.join(TABLE), |file| self.write_table(file))
    }

    /// A row for each point of each curve: mean and standard deviation over seeds, then every seed.
    fn write_table(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
        let mut table = csv::Writer::from_writer(out);
        let seeds = self.kept.runs.iter().map(|run| format!("seed {}", run.seed));
        let head = ["method", "measure", "x", "mean", "standard deviation", "seeds"].map(str::to_owned);
        table.write_record(head.into_iter().chain(seeds)).map_err(refused)?;
        for curve in &self.means {
            for (i, point) in curve.points.iter().enumerate() {
                let of_seed = |run: &SeedCurves| {
                    let same = run.curves.iter().find(|c| c.method == curve.method && c.measure == curve.measure);
                    same.and_then(|c| c.points.get(i)).map_or(String::new(), |(_, y)| y.to_string())
                };
                let numbers = [point.x, point.mean, point.deviation].map(|x| x.to_string());
                let row = [curve.method.clone(), curve.measure.clone()].into_iter().chain(numbers);
                let row = row.chain([point.seeds.to_string()]).chain(self.kept.runs.iter().map(of_seed));
                table.write_record(row).map_err(refused)?;
            }
        }
        Ok(table.flush()?)
    }
}
