//! What the paper says, as checks on what was measured, and the verdict on it. Verdicts are computed: nothing in a file can claim one.

use super::curves::{MeanCurve, SeedCurves};
use serde::{Deserialize, Serialize};

/// Something that the paper says about an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement, in our words.
    pub says: String,
    /// What has to be found for it to hold.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
    /// Why we think it does not hold here, shown where it does not.
    #[serde(default)]
    pub otherwise: Option<String>,
}

/// One thing that has to be found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Which measure.
    pub measure: String,
    /// Of which method.
    pub method: String,
    /// At which x; by default at the end.
    #[serde(default)]
    pub at: Option<f64>,
    /// What is expected.
    pub is: Expected,
}

/// What a measure is compared with. One of these keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expected {
    /// Larger than that of this method, in the same place.
    Above(String),
    /// Smaller than that of this method, in the same place.
    Below(String),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// From its first point on it has grown at least by this factor.
    GrowsBy(f64),
    /// From its first point on it has grown at most by this factor, and has not shrunk by more either.
    StaysWithin(f64),
}

/// Whether a statement was found to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All checks hold.
    Reproduced,
    /// Some do.
    InPart,
    /// None does.
    NotReproduced,
    /// Something that is needed was not measured.
    NotMeasured,
}

/// A check with what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The check in words.
    pub check: String,
    /// Whether it holds; nothing where it was not measured.
    pub holds: Option<bool>,
    /// What was measured.
    pub measured: Option<f64>,
    /// What it was compared with.
    pub compared: Option<f64>,
    /// In how many of how many seeds it holds by itself.
    pub seeds: (usize, usize),
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The statement.
    pub says: String,
    /// What was found.
    pub found: Vec<Found>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why not, where it does not.
    pub reason: Option<String>,
}

impl Claim {
    /// Compares with what was measured.
    pub fn judge(&self, runs: &[SeedCurves], means: &[MeanCurve]) -> Judged {
        let found: Vec<Found> = self.checks.iter().map(|check| check.find(runs, means)).collect();
        let holding = found.iter().filter(|found| found.holds == Some(true)).count();
        let verdict = match () {
            () if found.is_empty() || found.iter().any(|found| found.holds.is_none()) => Verdict::NotMeasured,
            () if holding == found.len() => Verdict::Reproduced,
            () if holding > 0 => Verdict::InPart,
            () => Verdict::NotReproduced,
        };
        let reason = match verdict {
            Verdict::Reproduced => None,
            Verdict::NotMeasured => Some("these settings leave out something that is needed to tell".into()),
            Verdict::InPart | Verdict::NotReproduced => self.otherwise.clone(),
        };
        Judged { says: self.says.clone(), found, verdict, reason }
    }
}

impl Check {
    fn find(&self, runs: &[SeedCurves], means: &[MeanCurve]) -> Found {
        let of_mean = |method: &str| -> Option<Vec<(f64, f64)>> {
            let curve = means.iter().find(|curve| curve.method == method && curve.measure == self.measure)?;
            Some(curve.points.iter().map(|point| (point.x, point.mean)).collect())
        };
        let of_seed = |run: &SeedCurves, method: &str| -> Option<Vec<(f64, f64)>> {
            let curve = run.curves.iter().find(|curve| curve.method == method && curve.measure == self.measure)?;
            Some(curve.points.clone())
        };
        let overall = self.compare(of_mean);
        let by_seed: Vec<bool> = runs
            .iter()
            .filter_map(|run| self.compare(|method| of_seed(run, method)))
            .map(|(_, _, holds)| holds)
            .collect();
        Found {
            check: self.in_words(),
            holds: overall.map(|(_, _, holds)| holds),
            measured: overall.map(|(measured, _, _)| measured),
            compared: overall.map(|(_, compared, _)| compared),
            seeds: (by_seed.iter().filter(|holds| **holds).count(), by_seed.len()),
        }
    }

    /// What was measured, what it is compared with and whether that is as expected; factors are of the last by the first point.
    fn compare(&self, curve: impl Fn(&str) -> Option<Vec<(f64, f64)>>) -> Option<(f64, f64, bool)> {
        let place = |points: &[(f64, f64)]| match self.at {
            Some(at) => points.iter().find(|point| point.0 == at).map(|point| point.1),
            None => points.last().map(|point| point.1),
        };
        let points = curve(&self.method)?;
        let measured = place(&points)?;
        let growth = || (points.len() > 1 && points[0].1 != 0.0).then(|| measured / points[0].1);
        Some(match &self.is {
            Expected::Above(other) => place(&curve(other)?).map(|other| (measured, other, measured > other))?,
            Expected::Below(other) => place(&curve(other)?).map(|other| (measured, other, measured < other))?,
            Expected::AtLeast(least) => (measured, *least, measured >= *least),
            Expected::AtMost(most) => (measured, *most, measured <= *most),
            Expected::GrowsBy(factor) => (growth()?, *factor, growth()? >= *factor),
            Expected::StaysWithin(factor) => {
                let growth = growth()?;
                (growth, *factor, growth <= *factor && growth >= 1.0 / *factor)
            }
        })
    }

    fn in_words(&self) -> String {
        let Self { measure, method, .. } = self;
        let place = self.at.map_or(String::new(), |at| format!(" at {at}"));
        match &self.is {
            Expected::Above(other) => format!("{measure} of {method} above that of {other}{place}"),
            Expected::Below(other) => format!("{measure} of {method} below that of {other}{place}"),
            Expected::AtLeast(least) => format!("{measure} of {method} at least {least}{place}"),
            Expected::AtMost(most) => format!("{measure} of {method} at most {most}{place}"),
            Expected::GrowsBy(factor) => format!("{measure} of {method} grows at least {factor}-fold"),
            Expected::StaysWithin(factor) => format!("{measure} of {method} changes at most {factor}-fold"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::curves::{Curve, over_seeds};
    use super::*;

    fn runs(better: f64) -> Vec<SeedCurves> {
        let run = |seed: u64| SeedCurves {
            seed,
            curves: vec![
                Curve::new("a", "value", [(1.0, 0.5), (2.0, better + seed as f64 / 100.0)]),
                Curve::new("b", "value", [(1.0, 0.5), (2.0, 0.8)]),
            ],
        };
        vec![run(0), run(1)]
    }

    fn check(is: Expected) -> Check {
        Check { measure: "value".into(), method: "a".into(), at: None, is }
    }

    fn verdict(checks: Vec<Check>, runs: &[SeedCurves]) -> Verdict {
        let claim = Claim { says: "a is better".into(), checks, otherwise: Some("because".into()) };
        claim.judge(runs, &over_seeds(runs)).verdict
    }

    #[test]
    fn a_verdict_follows_what_was_measured() {
        let above = || check(Expected::Above("b".into()));
        assert_eq!(verdict(vec![above()], &runs(0.9)), Verdict::Reproduced);
        assert_eq!(verdict(vec![above()], &runs(0.7)), Verdict::NotReproduced);
        assert_eq!(verdict(vec![above(), check(Expected::GrowsBy(1.2))], &runs(0.7)), Verdict::InPart);
        assert_eq!(verdict(vec![check(Expected::Above("c".into()))], &runs(0.9)), Verdict::NotMeasured);
        let elsewhere = Check { at: Some(7.0), ..above() };
        assert_eq!(verdict(vec![elsewhere], &runs(0.9)), Verdict::NotMeasured);
        let flat = |factor| check(Expected::StaysWithin(factor));
        assert_eq!(verdict(vec![flat(2.0)], &runs(0.9)), Verdict::Reproduced);
        assert_eq!(verdict(vec![flat(1.5)], &runs(0.9)), Verdict::NotReproduced);
        let bounds = vec![check(Expected::AtLeast(0.9)), check(Expected::AtMost(0.91))];
        assert_eq!(verdict(bounds, &runs(0.9)), Verdict::Reproduced);
    }

    #[test]
    fn seeds_are_counted_one_by_one() {
        let claim = Claim { says: String::new(), checks: vec![check(Expected::AtLeast(0.905))], otherwise: None };
        let runs = runs(0.9);
        assert_eq!(claim.judge(&runs, &over_seeds(&runs)).found[0].seeds, (1, 2));
    }
}
