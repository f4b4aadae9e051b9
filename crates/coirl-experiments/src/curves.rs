//! What an experiment measures: curves, and what becomes of them over seeds.

use serde::{Deserialize, Serialize};

/// A measure of one method along something that grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Whom it is about.
    pub method: String,
    /// What was measured.
    pub measure: String,
    /// Pairs (x, y), finite, in the order of x.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve without what is not finite.
    pub fn new(
        method: impl Into<String>,
        measure: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        Self { method: method.into(), measure: measure.into(), points: points.into_iter().filter(finite).collect() }
    }
}

/// The curves of one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedCurves {
    /// The seed.
    pub seed: u64,
    /// What it gave.
    pub curves: Vec<Curve>,
}

/// A point of a curve over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Where; the mean where seeds differ in it.
    pub x: f64,
    /// Mean over seeds.
    pub mean: f64,
    /// Standard deviation over seeds; zero where there is one.
    pub deviation: f64,
    /// Seeds.
    pub seeds: usize,
}

/// A curve over seeds: mean and spread, point by point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanCurve {
    /// Whom it is about.
    pub method: String,
    /// What was measured.
    pub measure: String,
    /// In the order of x.
    pub points: Vec<Point>,
}

impl MeanCurve {
    /// The point at x, or nothing where nothing was measured there.
    pub fn at(&self, x: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.x == x)
    }

    /// The last point.
    pub fn last(&self) -> Option<&Point> {
        self.points.last()
    }
}

/// Means over seeds, in the order in which methods and measures first appear. Points are matched by their place, so that seeds may differ in x.
pub fn over_seeds(runs: &[SeedCurves]) -> Vec<MeanCurve> {
    let mut means: Vec<MeanCurve> = Vec::new();
    for curve in runs.iter().flat_map(|run| &run.curves) {
        if !means.iter().any(|mean| mean.method == curve.method && mean.measure == curve.measure) {
            let same = |other: &&Curve| other.method == curve.method && other.measure == curve.measure;
            let all: Vec<&Curve> = runs.iter().flat_map(|run| &run.curves).filter(same).collect();
            let longest = all.iter().map(|curve| curve.points.len()).max().unwrap_or(0);
            let points = (0..longest).map(|i| point(&all, i)).collect();
            means.push(MeanCurve { method: curve.method.clone(), measure: curve.measure.clone(), points });
        }
    }
    means
}

fn point(curves: &[&Curve], i: usize) -> Point {
    let there: Vec<(f64, f64)> = curves.iter().filter_map(|curve| curve.points.get(i).copied()).collect();
    let n = there.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| there.iter().map(of).sum::<f64>() / n;
    // Seeds that agree in x keep it to the bit.
    let x = if there.iter().all(|pair| pair.0 == there[0].0) { there[0].0 } else { mean(|pair| pair.0) };
    let y = mean(|pair| pair.1);
    let squares: f64 = there.iter().map(|pair| (pair.1 - y).powi(2)).sum();
    Point { x, mean: y, deviation: (squares / (n - 1.0).max(1.0)).sqrt(), seeds: there.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_spreads_are_over_seeds() {
        let run = |seed, y| SeedCurves { seed, curves: vec![Curve::new("a", "value", [(1.0, y), (2.0, f64::NAN)])] };
        let means = over_seeds(&[run(0, 1.0), run(1, 3.0)]);
        assert_eq!(means.len(), 1);
        assert_eq!(means[0].points, [Point { x: 1.0, mean: 2.0, deviation: 2f64.sqrt(), seeds: 2 }]);
    }
}
