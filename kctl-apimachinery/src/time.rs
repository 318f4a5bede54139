//! Times of RFC 3339: parsed as Go does, and printed as `metav1.Time` and `metav1.MicroTime`.
//!
//! Upstream: `time.Parse` of Go with the layout `time.RFC3339`, `k8s.io/apimachinery/pkg/apis/meta/v1` (`time.go`,
//! `micro_time.go`).
//!
//! ```
//! use kctl_apimachinery::time;
//!
//! let time = time::parse("2026-01-31T13:00:00.5+01:00").unwrap();
//! assert_eq!(time::seconds(time), "2026-01-31T12:00:00Z");
//! ```

use std::ops::RangeInclusive;

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, Time},
};

use crate::duration::part;

/// Seconds since 1970 of the years 1 to 9999, which Go's and CEL's timestamps cover.
///
/// ```
/// assert_eq!(*kctl_apimachinery::time::SECONDS.end(), 253_402_300_799); // 9999-12-31T23:59:59Z
/// ```
pub const SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Parses an RFC 3339 time between the years 1 and 9999, with all digits of its fraction.
///
/// Returns `None` in the last 26 hours of the year 9999, which jiff does not support; [`parse_with_offset`] parses
/// these, too.
///
/// Go is more lenient than the RFC: it accepts one digit for the hour, and a comma before the fraction. It is stricter
/// than jiff's parser, which accepts more of ISO 8601: a space instead of the `T`, lower case, and offsets without a
/// colon.
///
/// ```
/// use kctl_apimachinery::time;
///
/// assert_eq!(time::parse("1970-01-01T02:00:01+02:00").unwrap().as_second(), 1);
/// assert!(time::parse("2020-01-01").is_none());
/// assert!(time::parse("2020-01-01 00:00:00Z").is_none());
/// ```
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let (since_1970, _offset) = parse_with_offset(text)?;
    Timestamp::from_duration(since_1970).ok()
}

/// Parses a time as [`parse`] does. Returns the time since 1970, and the UTC offset in minutes.
///
/// CEL keeps the offset of a timestamp.
///
/// ```
/// use kctl_apimachinery::time;
///
/// let (since_1970, offset) = time::parse_with_offset("1970-01-01T02:00:01+02:00").unwrap();
/// assert_eq!((since_1970.as_secs(), offset), (1, 120));
/// ```
#[must_use]
pub fn parse_with_offset(text: &str) -> Option<(SignedDuration, i64)> {
    let (date, time) = text.split_once('T')?;
    let (time, offset) = if let Some(time) = time.strip_suffix('Z') {
        (time, 0)
    } else {
        let at = time.find(['+', '-'])?;
        (&time[..at], minutes(&time[at..])?)
    };
    let local = date_of(date)?.to_datetime(time_of(time)?);
    let in_utc = local.checked_sub(SignedDuration::from_mins(offset)).ok()?;
    let since_1970 = in_utc.duration_since(Date::constant(1970, 1, 1).to_datetime(Time::midnight()));
    (1..=9999).contains(&in_utc.year()).then_some((since_1970, offset))
}

/// Prints a time in whole seconds, as `metav1.Time`. The fraction of a second is cut off.
///
/// ```
/// use kctl_apimachinery::time;
///
/// let time = "2026-01-01T00:00:00.999Z".parse().unwrap();
/// assert_eq!(time::seconds(time), "2026-01-01T00:00:00Z");
/// ```
#[must_use]
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Prints a time with six digits of its fraction, as `metav1.MicroTime`.
///
/// Leases, Events and audit logs have such times.
///
/// ```
/// use kctl_apimachinery::time;
///
/// let time = "2026-01-01T00:00:00.5Z".parse().unwrap();
/// assert_eq!(time::micros(time), "2026-01-01T00:00:00.500000Z");
/// ```
#[must_use]
pub fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Parses `2020-01-31`.
fn date_of(text: &str) -> Option<Date> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    Date::new(year, narrow(month), narrow(day)).ok()
}

/// Parses `15:04:05` with an optional fraction.
fn time_of(text: &str) -> Option<Time> {
    let (text, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // Go accepts one digit for the hour.
    let hour_len = text.find(':')?.clamp(1, 2);
    let [hour, minute, second] = numbers(text, ':', [hour_len, 2, 2])?;
    let nanosecond = i32::try_from(part(fraction, 1_000_000_000)).ok()?;
    Time::new(narrow(hour), narrow(minute), narrow(second), nanosecond).ok()
}

/// Returns the minutes of an offset `+01:00`. Go accepts up to 24 hours and 60 minutes.
fn minutes(text: &str) -> Option<i64> {
    let [hours, minutes] = numbers(text.get(1..)?, ':', [2, 2])?;
    let sum = i64::from(hours) * 60 + i64::from(minutes);
    (hours <= 24 && minutes <= 60).then_some(if text.starts_with('-') { -sum } else { sum })
}

/// Converts a number of at most two digits.
fn narrow(number: i16) -> i8 {
    i8::try_from(number).unwrap_or(i8::MAX)
}

/// Parses numbers with fixed numbers of digits, separated by `sign`.
fn numbers<const N: usize>(text: &str, sign: char, lens: [usize; N]) -> Option<[i16; N]> {
    let mut found = [0; N];
    let mut parts = text.split(sign);
    for (number, len) in found.iter_mut().zip(lens) {
        let part = parts.next().filter(|part| part.len() == len && part.bytes().all(|digit| digit.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
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
            assert_eq!(parse_with_offset(text).is_some(), expected, "{text}");
        }
        let time = parse_with_offset("1970-01-02T01:00:00.25+01:00");
        assert_eq!(time, Some((SignedDuration::new(24 * 60 * 60, 250_000_000), 60)));
        assert_eq!(parse("1970-01-02T01:00:00.25+01:00").map(micros).as_deref(), Some("1970-01-02T00:00:00.250000Z"));
    }
}
