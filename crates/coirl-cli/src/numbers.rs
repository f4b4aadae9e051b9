//! Lists of numbers as typed, and numbers as shown.

use std::str::FromStr;

/// Numbers separated by commas.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberList(pub(crate) Vec<f64>);

impl FromStr for NumberList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |(i, piece): (usize, &str)| {
            let piece = piece.trim();
            piece.parse().map_err(|_| format!("entry {i} is '{piece}'; expected a number"))
        };
        text.split(',').enumerate().map(number).collect::<Result<_, _>>().map(NumberList)
    }
}

/// Six significant digits, which is what a reader compares.
pub(crate) fn short(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{x:.3e}");
    }
    let decimals = (5 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// As many digits as a clinician reads off an instrument.
pub(crate) fn three_digits(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return short(x);
    }
    let scale = 10f64.powi(2 - x.abs().log10().floor() as i32);
    short((x * scale).round() / scale)
}

/// A bound: only its order of magnitude matters.
pub(crate) fn bound(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.1e}") }
}

/// A number that reads back as the same number.
pub(crate) fn full(x: f64) -> String {
    format!("{x:?}")
}

/// A count with its thousands set apart.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A file size.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..1_000 => format!("{n} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.2} GB", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        let shown = [0.225, 9.750000000000002, -1234567.0, 1e-9, 0.0, 1.0 / 3.0, 123456.78].map(short);
        assert_eq!(shown, ["0.225", "9.75", "-1234567", "1.000e-9", "0", "0.333333", "123457"]);
        assert_eq!([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn lists_name_the_bad_entry() {
        assert_eq!("0.1,-1, -0.5".parse(), Ok(NumberList(vec![0.1, -1.0, -0.5])));
        assert_eq!("1,x".parse::<NumberList>(), Err("entry 1 is 'x'; expected a number".into()));
        assert!("1,".parse::<NumberList>().is_err());
    }
}
