//! Literals of times and durations, as Go reads them: texts come in, whether they are one goes out.
//!
//! Upstream: `time.Parse` with RFC 3339 and `time.ParseDuration` of Go, the bounds of `cel-go/common/types/timestamp.go`.

use jiff::{
    SignedDuration,
    civil::{Date, Time},
};

/// Digits after a point that can make a nanosecond of an hour, and some.
const FRACTION_LEN_MAX: usize = 18;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Whether a text is a time between the years 1 and 9999.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let (time, offset) = match time.strip_suffix('Z') {
        Some(time) => (time, Some(0)),
        None => time.find(['+', '-']).map_or((time, None), |at| (&time[..at], minutes(&time[at..]))),
    };
    let (Some(date), Some(time), Some(offset)) = (date_of(date), time_of(time), offset) else { return false };
    let in_utc = date.to_datetime(time).checked_sub(SignedDuration::from_mins(offset));
    in_utc.is_ok_and(|time| (1..=9999).contains(&time.year()))
}

fn date_of(text: &str) -> Option<Date> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    Date::new(year, narrow(month), narrow(day)).ok()
}

fn time_of(text: &str) -> Option<Time> {
    let (text, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // One digit is enough for the hour.
    let hour_len = text.find(':')?.clamp(1, 2);
    let [hour, minute, second] = numbers(text, ':', [hour_len, 2, 2])?;
    Time::new(narrow(hour), narrow(minute), narrow(second), 0).ok()
}

/// The minutes of an offset; Go lets its parts be one too large.
fn minutes(text: &str) -> Option<i64> {
    let [hours, minutes] = numbers(text.get(1..)?, ':', [2, 2])?;
    let sum = i64::from(hours) * 60 + i64::from(minutes);
    (hours <= 24 && minutes <= 60).then_some(if text.starts_with('-') { -sum } else { sum })
}

fn narrow(number: i16) -> i8 {
    i8::try_from(number).unwrap_or(i8::MAX)
}

/// Numbers with so many digits each, between signs.
fn numbers<const N: usize>(text: &str, sign: char, lens: [usize; N]) -> Option<[i16; N]> {
    let mut found = [0; N];
    let mut parts = text.split(sign);
    for (number, len) in found.iter_mut().zip(lens) {
        let part = parts.next().filter(|part| part.len() == len && part.bytes().all(|digit| digit.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// Whether a text is a duration of less than 292 years: numbers, each with its unit.
pub(crate) fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let Some((unit, length)) = UNITS.iter().find(|(unit, _)| after.starts_with(unit)) else { return false };
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return false;
        }
        let Ok(whole) = format!("0{whole}").parse::<u64>() else { return false };
        nanoseconds += i128::from(whole) * length + part(fraction, *length);
        rest = &after[unit.len()..];
    }
    nanoseconds <= i128::from(i64::MAX) + i128::from(text.starts_with('-'))
}

/// What the digits after a point are of a length, cut to whole parts.
fn part(fraction: &str, length: i128) -> i128 {
    let digits: String = fraction.chars().take(FRACTION_LEN_MAX).collect();
    let scale = digits.chars().fold(1, |scale, _| scale * 10);
    digits.parse::<i128>().map_or(0, |digits| digits * length / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("2020-01-01T00:00:00Z", true),
            ("2020-01-01T00:00:00.5+01:00", true),
            ("2020-02-29T23:59:59-23:59", true),
            ("0001-01-01T00:00:00Z", true),
            ("9999-12-31T23:59:59.999999999Z", true),
            ("2020-01-01T1:00:00,5+24:60", true),
            ("0001-01-01T00:00:00-01:00", true),
            ("0001-01-01T00:00:00+01:00", false),
            ("9999-12-31T23:59:59-01:00", false),
            ("0000-01-01T00:00:00Z", false),
            ("10000-01-01T00:00:00Z", false),
            ("2019-02-29T00:00:00Z", false),
            ("2020-01-01t00:00:00z", false),
            ("2020-01-01 00:00:00Z", false),
            ("2020-01-01T00:00Z", false),
            ("2020-01-01T00:00:60Z", false),
            ("2020-01-01T24:00:00Z", false),
            ("2020-01-01T00:00:00", false),
            ("2020-01-01T00:00:00.Z", false),
            ("2020-01-01T00:00:00+0100", false),
            ("2020-1-1T00:00:00Z", false),
            ("2020-01-01", false),
        ] {
            assert_eq!(is_timestamp(text), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("1h30m", true),
            ("-1.5s", true),
            (".5h", true),
            ("1.h", true),
            ("1ns1us1µs1μs1ms", true),
            ("+0", true),
            ("9223372036854775807ns", true),
            ("2562047h", true),
            ("-9223372036854775808ns", true),
            ("2562047h47m16.854775807s", true),
            ("2562047h47m16.854775808s", false),
            ("2562047.9h", false),
            ("2562048h", false),
            ("9223372036854775808ns", false),
            ("", false),
            ("-", false),
            ("1", false),
            ("1d", false),
            (".h", false),
            ("1.1.1h", false),
        ] {
            assert_eq!(is_duration(text), expected, "{text}");
        }
    }
}
