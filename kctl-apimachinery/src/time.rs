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
    civil::{Date, DateTime, Time},
};

use crate::duration::part;

/// Seconds since 1970 of the years 1 to 9999, which Go's and CEL's timestamps cover.
///
/// ```
/// assert_eq!(*kctl_apimachinery::time::SECONDS.end(), 253_402_300_799); // 9999-12-31T23:59:59Z
/// ```
pub const SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A layout of times of the Kubernetes API, for `time.Parse` of Go.
///
/// Go is more lenient than the RFC. It accepts one digit for the hour, a comma before the fraction, and offsets up to
/// 24 hours and 60 minutes. It is stricter than jiff's parser, which accepts more of ISO 8601: a space instead of the
/// `T`, lower case, and offsets without a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// `time.RFC3339`, the layout of `metav1.Time`: seconds, and an optional fraction of any length.
    Rfc3339,
    /// `metav1.RFC3339Micro`, the layout of `metav1.MicroTime`: seconds, and exactly six digits of their fraction.
    ///
    /// Go also accepts a sign in place of the first digit (`.+12345`), which no client writes. It is rejected here.
    Rfc3339Micro,
}

/// Returns `true` if an API server accepts a string in a field of type `metav1.Time` or `metav1.MicroTime`.
///
/// The year may be 0000 to 9999. [`parse`] returns `None` for times outside the years 1 to 9999 in UTC.
///
/// ```
/// use kctl_apimachinery::time::{Layout, matches};
///
/// assert!(matches("2026-01-31T13:00:00Z", Layout::Rfc3339));
/// assert!(!matches("2026-01-31T13:00:00Z", Layout::Rfc3339Micro));
/// assert!(matches("2026-01-31T13:00:00.000000Z", Layout::Rfc3339Micro));
/// ```
#[must_use]
pub fn matches(text: &str, layout: Layout) -> bool {
    local(text, layout).is_some()
}

/// Parses a time of [`Layout::Rfc3339`] between the years 1 and 9999 in UTC, with all digits of its fraction.
///
/// Returns `None` in the last 26 hours of the year 9999, which jiff does not support; [`parse_with_offset`] parses
/// these, too.
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
    let (local, offset) = local(text, Layout::Rfc3339)?;
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

/// Parses a time. Returns the local time, and its UTC offset in minutes.
fn local(text: &str, layout: Layout) -> Option<(DateTime, i64)> {
    let (date, time) = text.split_once('T')?;
    let (time, offset) = if let Some(time) = time.strip_suffix('Z') {
        (time, 0)
    } else {
        let at = time.find(['+', '-'])?;
        (&time[..at], minutes(&time[at..])?)
    };
    Some((date_of(date)?.to_datetime(time_of(time, layout)?), offset))
}

/// Parses `2020-01-31`.
fn date_of(text: &str) -> Option<Date> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    Date::new(year, narrow(month), narrow(day)).ok()
}

/// Parses `15:04:05` with the fraction that the layout has.
fn time_of(text: &str, layout: Layout) -> Option<Time> {
    let (text, fraction) = match (layout, text.split_once(['.', ','])) {
        (Layout::Rfc3339, None) => (text, "0"),
        (Layout::Rfc3339, Some(parts)) if !parts.1.is_empty() => parts,
        (Layout::Rfc3339Micro, Some(parts)) if parts.1.len() == 6 => parts,
        (Layout::Rfc3339, Some(_)) | (Layout::Rfc3339Micro, _) => return None,
    };
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
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

    const TIME: &str = "Time";
    const MICRO_TIME: &str = "MicroTime";
    const PARSED: &str = "parse_with_offset";

    /// Checks which types accept the strings, as `time.Parse` of Go 1.26 does, and whether the times are in the range
    /// of `parse_with_offset`.
    fn check(texts: &[&str], expected: &[&str]) {
        for text in texts {
            let readers = [
                (TIME, matches(text, Layout::Rfc3339)),
                (MICRO_TIME, matches(text, Layout::Rfc3339Micro)),
                (PARSED, parse_with_offset(text).is_some()),
            ];
            let found: Vec<&str> = readers.iter().filter(|(_, accepts)| *accepts).map(|(reader, _)| *reader).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn layouts_accept_the_times_that_go_accepts() {
        check(
            &[
                "2020-01-01T00:00:00Z",
                "2020-02-29T23:59:59-23:59",
                "2000-02-29T00:00:00Z",
                "0001-01-01T00:00:00Z",
                "0001-01-01T00:00:00-01:00",
                "2020-01-01T1:00:00Z",
                "2020-01-01T00:00:00.5+01:00",
                "2020-01-01T00:00:00,5Z",
                "2020-01-01T1:00:00,5+24:60",
                "2020-01-01T00:00:00-24:00",
                "2020-01-01T00:00:00-00:00",
                "9999-12-31T23:59:59.999999999Z",
                "2020-01-01T00:00:00.12345678901234567890Z",
            ],
            &[TIME, PARSED],
        );
        check(
            &["2020-01-01T00:00:00.000001Z", "2020-01-01T00:00:00,000001Z", "2020-01-01T1:00:00.000000+24:60"],
            &[TIME, MICRO_TIME, PARSED],
        );
    }

    #[test]
    fn year_zero_and_out_of_range_offsets_match() {
        check(
            &[
                "0000-01-01T00:00:00Z",
                "0000-02-29T00:00:00Z",
                "0001-01-01T00:00:00+01:00",
                "9999-12-31T23:59:59-01:00",
                "9999-12-31T23:59:59-24:60",
            ],
            &[TIME],
        );
        check(&["0000-12-31T23:00:00-01:00"], &[TIME, PARSED]);
        check(&["0000-01-01T00:00:00.000000Z"], &[TIME, MICRO_TIME]);
    }

    #[test]
    fn other_strings_are_not_times() {
        check(
            &[
                "",
                "x",
                "2020-01-01",
                "2020-01-01T",
                "10000-01-01T00:00:00Z",
                "-001-01-01T00:00:00Z",
                "2020-1-1T00:00:00Z",
                "2020-00-01T00:00:00Z",
                "2020-13-01T00:00:00Z",
                "2020-01-00T00:00:00Z",
                "2020-04-31T00:00:00Z",
                "2019-02-29T00:00:00Z",
                "1900-02-29T00:00:00Z",
                "2020-01-01t00:00:00Z",
                "2020-01-01T00:00:00z",
                "2020-01-01 00:00:00Z",
                "2020-01-01T00:00Z",
                "2020-01-01T:00:00Z",
                "2020-01-01T000:00:00Z",
                "2020-01-01T00:0:00Z",
                "2020-01-01T00:00:0Z",
                "2020-01-01T24:00:00Z",
                "2020-01-01T00:60:00Z",
                "2020-01-01T00:00:60Z",
                "2020-01-01T00:00:00",
                "2020-01-01T00:00:00.Z",
                "2020-01-01T00:00:00.5",
                "2020-01-01T00:00:00.5.5Z",
                "2020-01-01T00:00:00.5xZ",
                "2020-01-01T00:00:00+0100",
                "2020-01-01T00:00:00+1:00",
                "2020-01-01T00:00:00+25:00",
                "2020-01-01T00:00:00+24:61",
                "2020-01-01T00:00:00+01:00:00",
                "2020-01-01T00:00:00Z+01:00",
                "2020-01-01T00:00:00+01:00Z",
                "2020-01-01T00:00:00ZZ",
                "2020-01-01T00:00:00Zx",
                "2020-01-01T00:00:00Z ",
                " 2020-01-01T00:00:00Z",
            ],
            &[],
        );
    }

    #[test]
    fn signed_fraction_is_rejected_unlike_in_go() {
        check(&["2020-01-01T00:00:00.+12345Z", "2020-01-01T00:00:00.-00000Z"], &[]);
    }

    #[test]
    fn offset_and_fraction_are_parsed() {
        let time = parse_with_offset("1970-01-02T01:00:00.25+01:00");
        assert_eq!(time, Some((SignedDuration::new(24 * 60 * 60, 250_000_000), 60)));
        assert_eq!(parse("1970-01-02T01:00:00.25+01:00").map(micros).as_deref(), Some("1970-01-02T00:00:00.250000Z"));
    }
}
