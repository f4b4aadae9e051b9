//! Evolution strategies: a gradient estimated from values at perturbed points.
//!
//! | perturbation | estimate |
//! |---|---|
//! | antithetic | mean over pairs of (F(x + σu) − F(x − σu)) / (2σ) · u, u normal |
//! | one-sided | 1/(mρ) Σ F(x + νu/‖u‖) · νu/‖u‖: no baseline, and it does not learn |
//! | forward | (F(x + νu) − F(x)) / ν · u (Nesterov & Spokoiny 2017) |

use super::number::Number;
use super::vectors::norm;
use crate::error::{Error, Result, check_positive, check_room};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

/// Numbers of directions and points that are held at a time.
const HELD: usize = 1 << 22;

/// Where values are taken.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Perturbation {
    /// Both sides of normal directions.
    Antithetic {
        /// σ.
        deviation: f64,
        /// Pairs of values.
        pairs: usize,
    },
    /// One side of directions of length ν, as printed in the paper.
    OneSided {
        /// ν.
        radius: f64,
        /// ρ.
        scale: f64,
        /// m.
        samples: usize,
    },
    /// A forward difference along one normal direction.
    Forward {
        /// ν.
        radius: f64,
    },
}

impl Perturbation {
    /// Refuses numbers outside their range.
    pub fn check(self) -> Result<()> {
        let count = |name: &'static str, n: usize| match n {
            0 => Err(Error::InvalidSetting { name, value: "0".into(), reason: "expected at least 1" }),
            _ => check_room(name, &[n]),
        };
        match self {
            Perturbation::Antithetic { deviation, pairs } => {
                check_positive("deviation", deviation)?;
                count("pairs", pairs)
            }
            Perturbation::OneSided { radius, scale, samples } => {
                check_positive("radius", radius)?;
                check_positive("scale", scale)?;
                count("samples", samples)
            }
            Perturbation::Forward { radius } => check_positive("radius", radius),
        }
    }

    /// The estimated gradient at a point. `values` gives F at several points; `within` brings a perturbed point back to where F is defined.
    pub fn estimate<N: Number>(
        self,
        point: &[N],
        rng: &mut impl Rng,
        within: impl Fn(&mut [N]),
        mut values: impl FnMut(Vec<Vec<N>>) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let mut direction = || -> Vec<f64> { point.iter().map(|_| rng.sample(StandardNormal)).collect() };
        let moved = |u: &[f64], by: f64| -> Vec<N> {
            let mut there: Vec<N> = point.iter().zip(u).map(|(x, d)| N::from_f64(x.to_f64() + by * d)).collect();
            within(&mut there);
            there
        };
        let mut gradient = vec![0.0; point.len()];
        let mut add = |scale: f64, u: &[f64]| gradient.iter_mut().zip(u).for_each(|(sum, x)| *sum += scale * x);
        let together = (HELD / (3 * point.len().max(1))).max(1);
        match self {
            Perturbation::Antithetic { deviation, pairs } => {
                for first in (0..pairs).step_by(together) {
                    let directions: Vec<Vec<f64>> = (first..pairs.min(first + together)).map(|_| direction()).collect();
                    let both = |u: &Vec<f64>| [moved(u, deviation), moved(u, -deviation)];
                    let found = values(directions.iter().flat_map(both).collect())?;
                    for (u, pair) in directions.iter().zip(found.chunks_exact(2)) {
                        add((pair[0] - pair[1]) / (2.0 * deviation * pairs as f64), u);
                    }
                }
            }
            Perturbation::OneSided { radius, scale, samples } => {
                let mut short = || {
                    let mut u = direction();
                    let size = norm(&u).max(f64::MIN_POSITIVE);
                    u.iter_mut().for_each(|x| *x *= radius / size);
                    u
                };
                for first in (0..samples).step_by(together) {
                    let directions: Vec<Vec<f64>> = (first..samples.min(first + together)).map(|_| short()).collect();
                    let found = values(directions.iter().map(|u| moved(u, 1.0)).collect())?;
                    for (u, value) in directions.iter().zip(found) {
                        add(value / (samples as f64 * scale), u);
                    }
                }
            }
            Perturbation::Forward { radius } => {
                let u = direction();
                let found = values(vec![moved(&u, radius), point.to_vec()])?;
                add((found[0] - found[1]) / radius, &u);
            }
        }
        Ok(gradient)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::random::stream;

    /// F(x) = x₁² + 3x₂ at (1, 2): the gradient is (2, 3).
    fn estimated(perturbation: Perturbation, repeats: u64) -> [f64; 2] {
        let f = |points: Vec<Vec<f64>>| Ok(points.iter().map(|x| x[0] * x[0] + 3.0 * x[1]).collect());
        let mut mean = [0.0; 2];
        for i in 0..repeats {
            let found = perturbation.estimate(&[1.0, 2.0], &mut stream(3, "test", i), |_| {}, f).unwrap();
            mean.iter_mut().zip(found).for_each(|(sum, g)| *sum += g / repeats as f64);
        }
        mean
    }

    #[test]
    fn estimates_are_right_on_average() {
        for perturbation in
            [Perturbation::Antithetic { deviation: 1e-3, pairs: 20 }, Perturbation::Forward { radius: 1e-4 }]
        {
            let [first, second] = estimated(perturbation, 4000);
            assert!((first - 2.0).abs() < 0.3 && (second - 3.0).abs() < 0.3, "{perturbation:?}: {first} {second}");
        }
    }
}
