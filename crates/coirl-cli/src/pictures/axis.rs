//! Axes: from numbers to pixels, and the ticks that people read.

use coirl_experiments::Axis as Kind;

/// Ticks on an axis, about.
const TICKS: f64 = 5.0;
/// Ticks of a logarithmic axis, at most.
const MOST_DECADES: i32 = 6;
/// Digits of plain numbers on a logarithmic axis; longer ones are powers of ten.
const PLAIN_DECADES: std::ops::RangeInclusive<i32> = -3..=4;

/// An axis over numbers from `least` to `most`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    kind: Kind,
    least: f64,
    most: f64,
}

impl Axis {
    /// Around all numbers that can be drawn; nothing where there are none.
    pub(super) fn around(kind: Kind, numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let drawn = |x: &f64| x.is_finite() && (kind != Kind::Log || *x > 0.0);
        let numbers: Vec<f64> = numbers.into_iter().filter(drawn).collect();
        let least = numbers.iter().copied().reduce(f64::min)?;
        let most = numbers.iter().copied().reduce(f64::max)?;
        // A single number gets some room.
        let (least, most) = match (least < most, kind) {
            (true, _) => (least, most),
            (false, Kind::Log) => (least / 2.0, most * 2.0),
            (false, _) => (least - 0.05 * least.abs().max(1e-3), most + 0.05 * most.abs().max(1e-3)),
        };
        Some(Self { kind, least, most })
    }

    /// Over a range that was asked for; nothing where it cannot be drawn.
    pub(super) fn over(kind: Kind, (least, most): (f64, f64)) -> Option<Self> {
        let fits = least.is_finite() && most.is_finite() && least < most && (kind != Kind::Log || least > 0.0);
        fits.then_some(Self { kind, least, most })
    }

    /// How far along the axis a number is, from 0 to 1 and beyond; nothing for what has no logarithm.
    pub(super) fn place(&self, x: f64) -> Option<f64> {
        let (x, least, most) = match self.kind {
            Kind::Log => (x.ln(), self.least.ln(), self.most.ln()),
            Kind::Linear | Kind::Percent => (x, self.least, self.most),
        };
        // The logarithm of what is not positive is not finite.
        Some((x - least) / (most - least)).filter(|place| place.is_finite())
    }

    /// Numbers to be marked, with what is written beside them.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.kind {
            Kind::Log => self.decades(),
            Kind::Linear | Kind::Percent => self.steps(),
        }
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self) -> Vec<(f64, String)> {
        let rough = (self.most - self.least) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| rough <= *step).unwrap_or(rough);
        let slack = 1e-6 * step;
        let (first, last) = (((self.least - slack) / step).ceil() as i64, ((self.most + slack) / step).floor() as i64);
        (first..=last).map(|k| k as f64 * step).map(|x| (x, self.shown(x, step))).collect()
    }

    /// Powers of ten; two and five times them where there would be too few.
    fn decades(&self) -> Vec<(f64, String)> {
        let (first, last) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
        let every = 1 + (last - first - 1).max(0) / MOST_DECADES;
        let multiples: &[f64] = match self.most / self.least {
            ratio if ratio < 30.0 => &[1.0, 2.0, 5.0],
            ratio if ratio < 300.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let tick = |decade: i32, multiple: f64| {
            // By the decimal digits, which rounds once where powers and products would round twice.
            let x: f64 = format!("{multiple}e{decade}").parse().unwrap_or(f64::NAN);
            (x, if PLAIN_DECADES.contains(&decade) { plain(x, decade) } else { power_of_ten(multiple, decade) })
        };
        let ticks = (first..=last).filter(|decade| decade % every == 0);
        let ticks = ticks.flat_map(|decade| multiples.iter().map(move |multiple| tick(decade, *multiple)));
        let inside: Vec<(f64, String)> =
            ticks.filter(|(x, _)| (self.least * (1.0 - 1e-9)..=self.most * (1.0 + 1e-9)).contains(x)).collect();
        // A narrow range may have none of them.
        if inside.len() < 2 { self.steps() } else { inside }
    }

    fn shown(&self, x: f64, step: f64) -> String {
        let (x, step, unit) = if self.kind == Kind::Percent { (100.0 * x, 100.0 * step, " %") } else { (x, step, "") };
        let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
        format!("{}{unit}", grouped(&format!("{x:.decimals$}")))
    }
}

fn plain(x: f64, decade: i32) -> String {
    let decimals = (-decade).max(0) as usize;
    grouped(&format!("{x:.decimals$}"))
}

fn power_of_ten(multiple: f64, decade: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' => '⁰',
        digit => char::from_u32('⁰' as u32 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    let power: String = decade.to_string().chars().map(raised).collect();
    if multiple == 1.0 { format!("10{power}") } else { format!("{multiple}·10{power}") }
}

/// Thousands set apart, and a minus as wide as a plus.
fn grouped(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) if digits.chars().any(|c| ('1'..='9').contains(&c)) => ("−", digits),
        Some(digits) => ("", digits),
        None => ("", text),
    };
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let whole = whole.parse().map_or(whole.to_owned(), crate::numbers::count);
    format!("{sign}{whole}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(kind: Kind, range: (f64, f64)) -> Vec<String> {
        Axis::over(kind, range).into_iter().flat_map(|axis| axis.ticks()).map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers_with_the_decimals_they_need() {
        assert_eq!(labels(Kind::Linear, (0.0, 500.0)), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(labels(Kind::Linear, (-1500.0, 2600.0)), ["−1,000", "0", "1,000", "2,000"]);
        assert_eq!(labels(Kind::Percent, (0.6, 1.0)), ["60 %", "70 %", "80 %", "90 %", "100 %"]);
        assert_eq!(labels(Kind::Percent, (0.991, 0.9998)), ["99.2 %", "99.4 %", "99.6 %", "99.8 %"]);
        assert_eq!(labels(Kind::Log, (0.0005, 2.0)), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(Kind::Log, (1e5, 1e8)), ["10⁵", "10⁶", "10⁷", "10⁸"]);
        assert_eq!(labels(Kind::Log, (8.0, 60.0)), ["10", "20", "50"]);
        assert_eq!(labels(Kind::Log, (1e-12, 1.0)).len(), 7);
        assert_eq!(labels(Kind::Log, (1.1, 1.9)), ["1.2", "1.4", "1.6", "1.8"]);
    }

    #[test]
    fn only_positive_numbers_have_a_place_on_a_logarithmic_axis() {
        let axis = Axis::around(Kind::Log, [-1.0, 0.0, 0.01, f64::NAN, 1.0]);
        let places = |x: f64| axis.as_ref().and_then(|axis| axis.place(x));
        assert_eq!([places(0.01), places(1.0), places(0.0), places(-1.0)], [Some(0.0), Some(1.0), None, None]);
        assert!((places(0.1).unwrap_or(0.0) - 0.5).abs() < 1e-12);
        assert_eq!(Axis::around(Kind::Log, [0.0, -2.0]), None);
        assert_eq!(Axis::over(Kind::Log, (0.0, 1.0)), None);
        // A single number is in the middle of a linear axis.
        assert_eq!(Axis::around(Kind::Linear, [0.0]).and_then(|axis| axis.place(0.0)), Some(0.5));
    }
}
