//! Times of a long table: numbers, or dates in the forms of ISO 8601.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

/// Seconds of the greatest offset from UTC that ISO 8601 readers accept.
const MOST_OFFSET: i32 = 18 * 3_600;

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

/// Forms of a time of day, with a space or `T` after the date.
const CLOCKS: [&str; 2] = ["%H:%M:%S%.f", "%H:%M"];

/// A number, or a date with or without a time of day and an offset from UTC.
pub(super) fn time_of(cell: &str) -> Option<Time> {
    if let Ok(number) = cell.parse::<f64>() {
        return Some(number).filter(|x| x.is_finite()).map(Time::Number);
    }
    let (date, clock) = match cell.split_once([' ', 'T']) {
        Some((date, clock)) => (date, Some(clock.trim())),
        None => (cell, None),
    };
    let date = day_of(date)?;
    let Some(clock) = clock else { return seconds(date.and_time(NaiveTime::MIN), 0) };
    let (clock, offset) = offset_of(clock)?;
    let clock = CLOCKS.iter().find_map(|form| NaiveTime::parse_from_str(clock, form).ok())?;
    seconds(date.and_time(clock), offset)
}

fn seconds(local: NaiveDateTime, offset: i32) -> Option<Time> {
    let utc = local.and_utc();
    let fraction = f64::from(utc.timestamp_subsec_nanos()) * 1e-9;
    Some(Time::Date(utc.timestamp() as f64 + fraction - f64::from(offset)))
}

/// Year, month and day. Years have four digits: 05/07/2018 is two different days to two different readers.
fn day_of(date: &str) -> Option<NaiveDate> {
    let form = if date.contains('/') { "%Y/%m/%d" } else { "%Y-%m-%d" };
    let year = date.split(['/', '-']).next()?;
    let four = year.len() == 4 && year.bytes().all(|digit| digit.is_ascii_digit());
    NaiveDate::parse_from_str(date, form).ok().filter(|_| four)
}

/// The clock without its offset from UTC, and that offset in seconds: `Z`, `+02`, `+0200` or `+02:00`, up to 18 hours.
fn offset_of(clock: &str) -> Option<(&str, i32)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), 0));
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0)) };
    let sign = if clock[at..].starts_with('-') { -1 } else { 1 };
    let digits: String = clock[at + 1..].chars().filter(|c| *c != ':').collect();
    let number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse::<i32>().ok())?;
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        _ => return None,
    };
    let seconds = hours * 3_600 + minutes * 60;
    (minutes < 60 && seconds <= MOST_OFFSET).then(|| (clock[..at].trim_end(), sign * seconds))
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
        assert_eq!(date("2024-2-9 7:05"), date("2024-02-09 07:05"));
        assert_eq!(date("2024-02-29 12:30:15.25"), Some(1_709_209_815.25));
        for refused in [
            "soon",
            "2024-13-01",
            "05/07/2018",
            "2024-01-01 99:00",
            "inf",
            "2024-01-01T10:00+x",
            "2024-02-31",
            "2023-02-29",
            "2024-04-31 10:00",
            "2024-01-01 1.5:30",
            "2024-01-01 24:30",
            "2024-01-01T10:00+99:99",
            "2024-01-01T10:00+19:00",
            "2024-01-01T10:00+02:75",
            "2024-01-01T",
            "12024-01-01",
        ] {
            assert_eq!(time_of(refused), None, "{refused}");
        }
    }
}
