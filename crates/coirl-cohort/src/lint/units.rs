//! Units that are not what they are said to be, in a whole column or in some stays.
//!
//! A column whose median is impossible in its unit and possible in another is in the other one. Where some stays are in another unit, the medians of stays
//! are a mixture of one distribution and of the same one after the conversion, which is known: with x (or ln x, where the conversion
//! is a factor) normal,
//!
//! ```text
//! (1 − π) N(μ, σ²) + π N(sμ + o, s²σ²),
//! ```
//!
//! fitted by expectation maximisation. It competes with one skewed distribution of as many parameters, a normal one with a spread of its own on
//! either side, whose likelihood is known in closed form for every mode: long tails alone are no second unit. And two normal distributions of any place and
//! spread must not be better by more than their two parameters more are worth: a second kind of patients is no second unit either. Cost: linear in the
//! cells.

use super::quantities::{Quantity, Unit};
use super::{Finding, warning};
use crate::spec::Spec;
use crate::split::Parts;
use crate::table::Table;
use coirl::Result;

/// Log-likelihood by which two units must be ahead of one skewed distribution: in all, and per stay.
const AHEAD: f64 = 8.0;
const AHEAD_PER_STAY: f64 = 0.02;
/// Standard deviations between the two units below which they cannot be told apart.
const APART: f64 = 2.5;
/// Stays that must be in the second unit, and their share.
const FEWEST: f64 = 4.0;
const SHARE: f64 = 0.03;
/// Steps of the expectation maximisation, and modes that are tried.
const STEPS: usize = 60;
const MODES: usize = 60;
/// Values outside the plausible range that another unit must explain, and their share among those outside.
const IMPLAUSIBLE: usize = 3;
const EXPLAINED: f64 = 0.5;
/// The part of the plausible values that one in another unit must fall into.
const CENTRAL: [f64; 2] = [0.01, 0.99];

/// A column with everything that says which unit it is in.
struct Measured<'a> {
    name: &'a str,
    quantity: &'static Quantity,
    /// The place of its unit in the quantity.
    unit: usize,
    declared: bool,
    is_dose: bool,
    /// The median of every stay that has a value; of doses and volumes, of what is not zero.
    medians: Vec<f64>,
    /// All values.
    values: Vec<f64>,
    plausible: Option<[f64; 2]>,
}

pub(super) fn units(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    for name in spec.columns() {
        let is_end = spec.outcome.as_ref().is_some_and(|outcome| outcome.column == name);
        let Some(quantity) = Quantity::of(name).filter(|_| !is_end && spec.action.column.as_deref() != Some(name))
        else {
            continue;
        };
        let column = table.column(name)?;
        let known = |row: &u32| Some(f64::from(column[*row as usize])).filter(|x| *x > 0.0);
        let medians = parts.all().filter_map(|stay| median(stay.rows.iter().filter_map(known).collect())).collect();
        let mut column = Measured {
            name,
            quantity,
            unit: 0,
            declared: false,
            is_dose: spec.action.doses.iter().any(|dose| dose == name),
            medians,
            values: parts.all().flat_map(|stay| &stay.rows).filter_map(known).collect(),
            plausible: spec.cohort.plausible.get(name).copied(),
        };
        let Some(middle) = median(column.medians.clone()) else { continue };
        let fits = |unit: &Unit| quantity.is_typical(unit.in_first(middle));
        match spec.units.get(name) {
            Some(written) => match quantity.unit(written) {
                Some(unit) => (column.unit, column.declared) = (unit, true),
                // In a unit that is not known here nothing can be said.
                None => continue,
            },
            None => column.unit = quantity.units.iter().position(fits).unwrap_or(0),
        }
        findings.extend(column.in_another_unit(middle).or_else(|| column.implausible()).or_else(|| column.mixed()));
    }
    Ok(())
}

impl Measured<'_> {
    fn own(&self) -> &'static Unit {
        &self.quantity.units[self.unit]
    }

    fn others(&self) -> impl Iterator<Item = &'static Unit> {
        let own = self.unit;
        self.quantity.units.iter().enumerate().filter(move |(i, _)| *i != own).map(|(_, unit)| unit)
    }

    /// A median that is impossible in the unit that was declared and possible in another.
    fn in_another_unit(&self, middle: f64) -> Option<Finding> {
        // Ages have a rule of their own.
        if !self.declared
            || self.quantity.is_typical(self.own().in_first(middle))
            || self.own().name() == "years"
            || self.own().name() == "days"
        {
            return None;
        }
        let other = self.others().find(|unit| self.quantity.is_typical(unit.in_first(middle)))?;
        Some(warning(
            "wrong-unit",
            format!(
                "{} is said to be in {}, but its median is {}, which is possible in {}: convert it, or say the right unit under \
                 [units] and ranges in it",
                self.name,
                self.own().name(),
                short(middle),
                other.name()
            ),
        ))
    }

    /// Values outside the plausible range that would be ordinary in another unit.
    fn implausible(&self) -> Option<Finding> {
        let [lo, hi] = self.plausible?;
        let (mut inside, outside): (Vec<f64>, Vec<f64>) = self.values.iter().partition(|x| (lo..=hi).contains(*x));
        inside.sort_by(f64::total_cmp);
        let quantile = |share: f64| inside.get((share * inside.len() as f64) as usize).or(inside.last()).copied();
        let central = quantile(CENTRAL[0])?..=quantile(CENTRAL[1])?;
        let ordinary = |unit: &Unit| {
            let converted = |x: &&f64| central.contains(&self.own().in_it(unit.in_first(**x)));
            outside.iter().filter(converted).count()
        };
        let (unit, n) = self.others().map(|unit| (unit, ordinary(unit))).max_by_key(|&(_, n)| n)?;
        (n >= IMPLAUSIBLE && n as f64 > EXPLAINED * outside.len() as f64).then(|| {
            warning(
                "mixed-units",
                format!(
                    "{n} values of {} are outside {lo} to {hi} and would be ordinary in {} (others are in {}): convert them; as they are \
                     they count as not measured",
                    self.name,
                    unit.name(),
                    self.own().name()
                ),
            )
        })
    }

    /// Stays in another unit.
    fn mixed(&self) -> Option<Finding> {
        if self.quantity.tailed && !self.is_dose {
            return None;
        }
        let n = self.medians.len() as f64;
        let found = self.others().filter_map(|unit| {
            let mixture = Mixture::fit(&self.medians, self.own(), unit)?;
            Some((unit, mixture)).filter(|(_, mixture)| {
                mixture.ahead > AHEAD + AHEAD_PER_STAY * n
                    && mixture.behind_free < n.ln()
                    && mixture.apart > APART
                    && mixture.share * n >= FEWEST
                    && mixture.share >= SHARE
            })
        });
        let (unit, mixture) = found.max_by(|a, b| a.1.ahead.total_cmp(&b.1.ahead))?;
        let [own, other] = mixture.middles.map(short);
        Some(warning(
            "mixed-units",
            format!(
                "{} has two units: {:.0} of {} stays look as if in {} (about {other}, where others are about {own} {}); convert them",
                self.name,
                mixture.share * n,
                self.medians.len(),
                unit.name(),
                self.own().name()
            ),
        ))
    }
}

/// Two units in one column.
struct Mixture {
    /// Share of the stays in the second unit.
    share: f64,
    /// Log-likelihood beyond that of one skewed distribution.
    ahead: f64,
    /// Log-likelihood by which two normal distributions of any place and spread are better.
    behind_free: f64,
    /// Distance of the units in standard deviations.
    apart: f64,
    /// Medians in the first and the second unit.
    middles: [f64; 2],
}

impl Mixture {
    fn fit(values: &[f64], own: &Unit, other: &Unit) -> Option<Self> {
        // A factor is a shift of logarithms.
        let is_factor = own.offset == 0.0 && other.offset == 0.0;
        let x: Vec<f64> = values.iter().map(|x| if is_factor { x.ln() } else { *x }).collect();
        let (scale, offset) = if is_factor {
            (1.0, (other.scale / own.scale).ln())
        } else {
            let at = |x: f64| other.in_it(own.in_first(x));
            (at(1.0) - at(0.0), at(0.0))
        };
        let n = x.len() as f64;
        let mut mean = median(x.clone())?;
        let mut share = 0.2;
        let least = 1e-6 * (1.0 + mean.abs());
        let deviations: Vec<f64> = x.iter().map(|x| (x - mean).abs()).collect();
        let mut spread = (1.4826 * median(deviations)?).max(least);
        let back = |x: f64| (x - offset) / scale;
        let mut likelihood = f64::NEG_INFINITY;
        for _ in 0..STEPS {
            let parts = [(mean, spread), (scale * mean + offset, scale * spread)];
            let (own, second) = responsibilities(&x, share, parts);
            likelihood = own;
            share = (second.iter().sum::<f64>() / n).clamp(1e-9, 1.0 - 1e-9);
            mean = x.iter().zip(&second).map(|(x, r)| (1.0 - r) * x + r * back(*x)).sum::<f64>() / n;
            let square = |(x, r): (&f64, &f64)| (1.0 - r) * (x - mean).powi(2) + r * (back(*x) - mean).powi(2);
            spread = (x.iter().zip(&second).map(square).sum::<f64>() / n).sqrt().max(least);
        }
        let parts = [(mean, spread), (scale * mean + offset, scale * spread)];
        let in_units = |x: f64| if is_factor { x.exp() } else { x };
        Some(Self {
            share,
            behind_free: free(&x, share, parts, least) - likelihood,
            ahead: likelihood - skewed(x),
            apart: (parts[1].0 - mean).abs() / spread.max(scale * spread),
            middles: parts.map(|(mean, _)| in_units(mean)),
        })
    }
}

/// The log-likelihood of two normal distributions, and how likely each value is of the second.
fn responsibilities(x: &[f64], share: f64, parts: [(f64, f64); 2]) -> (f64, Vec<f64>) {
    let normal = |x: f64, (mean, spread): (f64, f64)| {
        (-0.5 * ((x - mean) / spread).powi(2)).exp() / (spread * (2.0 * std::f64::consts::PI).sqrt())
    };
    let mut likelihood = 0.0;
    let second = |x: &f64| {
        let [a, b] = [(1.0 - share) * normal(*x, parts[0]), share * normal(*x, parts[1])];
        let density = (a + b).max(f64::MIN_POSITIVE);
        likelihood += density.ln();
        b / density
    };
    let second = x.iter().map(second).collect();
    (likelihood, second)
}

/// The log-likelihood of two normal distributions of any place and spread, found from these on.
fn free(x: &[f64], mut share: f64, mut parts: [(f64, f64); 2], least: f64) -> f64 {
    let n = x.len() as f64;
    // A spread that shrinks to a point has no greatest likelihood.
    let narrowest = (0.2 * parts[0].1.min(parts[1].1)).max(least);
    let mut likelihood = f64::NEG_INFINITY;
    for _ in 0..STEPS {
        let (own, second) = responsibilities(x, share, parts);
        likelihood = own;
        share = (second.iter().sum::<f64>() / n).clamp(1e-9, 1.0 - 1e-9);
        parts = [false, true].map(|is_second| {
            let weights = || second.iter().map(|r| if is_second { *r } else { 1.0 - r });
            let sum = weights().sum::<f64>().max(1e-9);
            let mean = x.iter().zip(weights()).map(|(x, w)| w * x).sum::<f64>() / sum;
            let variance = x.iter().zip(weights()).map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>() / sum;
            (mean, variance.sqrt().max(narrowest))
        });
    }
    likelihood
}

/// The greatest log-likelihood of a normal distribution with a spread of its own on either side of its mode: with S₁ and S₂ the sums of squares on the
/// two sides and K = S₁^⅓ + S₂^⅓, it is n ln √(2n / (π K³)) − n/2.
fn skewed(mut x: Vec<f64>) -> f64 {
    x.sort_by(f64::total_cmp);
    let n = x.len() as f64;
    let of_mode = |i: usize| {
        let mode = x[i * (x.len() - 1) / MODES];
        let square = |below: bool| x.iter().filter(|x| (**x < mode) == below).map(|x| (x - mode).powi(2)).sum::<f64>();
        let k = square(true).cbrt() + square(false).cbrt();
        0.5 * n * (2.0 * n / (std::f64::consts::PI * k.powi(3).max(f64::MIN_POSITIVE))).ln() - 0.5 * n
    };
    (0..=MODES).map(of_mode).fold(f64::NEG_INFINITY, f64::max)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// A number with three digits.
fn short(x: f64) -> String {
    let digits = (2 - x.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    format!("{x:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use coirl::random::stream;
    use rand_distr::{Distribution, LogNormal, Normal};

    fn ahead(values: &[f64], column: &str) -> (f64, f64) {
        let quantity = Quantity::of(column).unwrap_or_else(|| panic!("{column}"));
        let mixture = Mixture::fit(values, &quantity.units[0], &quantity.units[1]);
        mixture.map_or((f64::NAN, f64::NAN), |mixture| (mixture.ahead, mixture.share))
    }

    #[test]
    fn a_second_unit_is_told_from_a_long_tail() {
        let mut rng = stream(1, "units", 0);
        let weights: Vec<f64> = Normal::new(80.0, 18.0)
            .iter()
            .flat_map(|own| own.sample_iter(&mut rng).take(200).collect::<Vec<_>>())
            .map(|x: f64| x.max(30.0))
            .collect();
        let mixed: Vec<f64> =
            weights.iter().enumerate().map(|(i, x)| if i % 5 == 0 { 2.20462 * x } else { *x }).collect();
        let (own, other) = (ahead(&weights, "weight"), ahead(&mixed, "weight"));
        assert!(own.0 < 0.0 && other.0 > AHEAD && (other.1 - 0.2).abs() < 0.06, "{own:?} {other:?}");
        // Bilirubin of patients whose liver fails is as far out as another unit would be.
        let tailed: Vec<f64> = LogNormal::new(-0.2, 1.2)
            .iter()
            .flat_map(|own| own.sample_iter(&mut rng).take(500).collect::<Vec<_>>())
            .collect();
        let (tail, _) = ahead(&tailed, "bilirubin");
        assert!(tail < AHEAD, "{tail}");
        let temperatures: Vec<f64> = Normal::new(36.8, 0.6)
            .iter()
            .flat_map(|own| own.sample_iter(&mut rng).take(100).collect::<Vec<_>>())
            .collect();
        let mixed: Vec<f64> =
            temperatures.iter().enumerate().map(|(i, x)| if i % 10 == 0 { 1.8 * x + 32.0 } else { *x }).collect();
        let (found, share) = ahead(&mixed, "temp");
        assert!(found > 30.0 && (share - 0.1).abs() < 0.01, "{found} {share}");
    }
}
