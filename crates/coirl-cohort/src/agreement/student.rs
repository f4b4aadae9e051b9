//! Quantiles of Student's t for whole degrees of freedom, and the normal distribution.
//!
//! P(|T| ≤ t) is a finite sum of powers of the cosine of θ = atan(t/√ν) (Abramowitz and Stegun 26.7.3 and 26.7.4), and rises with t, so that bisection
//! finds the quantile. Cost: ν/2 terms a step.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// Degrees of freedom from which on the distribution is taken for the normal one: their quantiles differ by less than one in 10⁴.
const NORMAL_FROM: usize = 10_000;
/// Halvings of [0, 1] for θ/(π/2): all that double precision can tell.
const BISECTIONS: usize = 60;

/// The probability that a standard normal number is at most `x` in absolute value.
pub(super) fn normal_within(x: f64) -> f64 {
    libm::erf(x * FRAC_1_SQRT_2)
}

/// The probability that Student's t with so many degrees of freedom is at most `x` in absolute value, where `angle` is atan(x/√ν).
fn student_within(angle: f64, degrees: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2;
    // Terms of the sum, each from the one before.
    let mut term = if odd == 1 { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut power = 2 + odd;
    while power < degrees {
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
        sum += term;
        power += 2;
    }
    if odd == 1 { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The x that Student's t with so many degrees of freedom exceeds in absolute value with a probability of `1 − level`; infinite without any.
pub(super) fn student_quantile(level: f64, degrees: usize) -> f64 {
    if degrees == 0 || level >= 1.0 {
        return f64::INFINITY;
    }
    let degrees = degrees.min(NORMAL_FROM);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        let below = student_within(middle * std::f64::consts::FRAC_PI_2, degrees) < level;
        if below { low = middle } else { high = middle }
    }
    (low * std::f64::consts::FRAC_PI_2).tan() * (degrees as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles as tables of the distribution print them.
    #[test]
    fn quantiles_are_those_of_printed_tables() {
        let table =
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (29, 2.045), (120, 1.980)];
        for (degrees, expected) in table {
            assert!((student_quantile(0.95, degrees) - expected).abs() < 6e-4, "{degrees}");
        }
        assert!((student_quantile(0.99, 7) - 3.499).abs() < 6e-4);
        assert!((student_quantile(0.95, 1_000_000) - 1.960).abs() < 6e-4);
        assert_eq!(student_quantile(0.95, 0), f64::INFINITY);
        assert!((normal_within(1.959_964) - 0.95).abs() < 1e-7);
    }
}
