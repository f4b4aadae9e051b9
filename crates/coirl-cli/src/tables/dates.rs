//! Times of a long table: numbers, or dates in the forms of ISO 8601.

/// What is read as a time, for messages.
pub(super) const EXPECTED: &str = "expected a number, or a date such as 2018-07-05, 2018/07/05, 2018-07-05 14:30, 2018-07-05T14:30:00Z or \
                                   2018-07-05T14:30:00+02:00 (year, month, day)";

/// A time as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Time {
    Number(f64),
    /// Seconds since the beginning of 1970.
    Date(f64),
}

/// A number, or a date with or without a time of day and an offset from UTC.
pub(super) fn time_of(cell: &str) -> Option<Time> {
    if let Ok(number) = cell.parse::<f64>() {
        return Some(number).filter(|x| x.is_finite()).map(Time::Number);
    }
    let (date, clock) = cell.split_once([' ', 'T']).unwrap_or((cell, "00:00"));
    let separator = if date.contains('/') { '/' } else { '-' };
    let mut date = date.splitn(3, separator).map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    // Years of four digits: 05/07/2018 is two different days to two different readers.
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1000..=9999).contains(&year) {
        return None;
    }
    let (clock, offset) = offset_of(clock.trim())?;
    let mut clock = clock.trim().splitn(3, ':').map(str::parse::<f64>);
    let (hour, minute) = (clock.next()?.ok()?, clock.next()?.ok()?);
    let second = clock.next().transpose().ok()?.unwrap_or(0.0);
    let within = |x: f64, end: f64| (0.0..end).contains(&x);
    if !within(hour, 25.0) || !within(minute, 60.0) || !within(second, 61.0) {
        return None;
    }
    // Days since 1970, with years that begin in March so that the leap day is the last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
            - 1
            - 719_468;
    Some(Time::Date(days as f64 * 86_400.0 + hour * 3_600.0 + minute * 60.0 + second - offset))
}

/// The clock without its offset from UTC, and that offset in seconds.
fn offset_of(clock: &str) -> Option<(&str, f64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0.0));
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0.0)) };
    let sign = if clock[at..].starts_with('-') { -1.0 } else { 1.0 };
    let digits: String = clock[at + 1..].chars().filter(|c| *c != ':').collect();
    let number = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0.0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        _ => return None,
    };
    Some((&clock[..at], sign * (hours * 3_600.0 + minutes * 60.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_or_dates() {
        assert_eq!(time_of("3.5"), Some(Time::Number(3.5)));
        let date = |text: &str| match time_of(text) {
            Some(Time::Date(seconds)) => Some(seconds),
            _ => None,
        };
        assert_eq!(date("1970-01-01"), Some(0.0));
        assert_eq!(date("2000-03-01 00:00"), Some(951_868_800.0));
        assert_eq!(date("2024-02-29T12:30:15Z"), Some(1_709_209_815.0));
        assert_eq!(date("2024/02/29 12:30:15"), date("2024-02-29T12:30:15Z"));
        assert_eq!(date("2024-02-29T14:30:15+02:00"), date("2024-02-29T12:30:15Z"));
        assert_eq!(date("2024-02-29 07:30:15.0 -0500"), date("2024-02-29T12:30:15Z"));
        for refused in ["soon", "2024-13-01", "05/07/2018", "2024-01-01 99:00", "inf", "2024-01-01T10:00+x"] {
            assert_eq!(time_of(refused), None, "{refused}");
        }
    }
}
