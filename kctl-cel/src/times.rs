//! Timestamps and durations in Go's notation.
//!
//! Upstream: `time.Parse` with RFC 3339 and `time.ParseDuration` of Go, the bounds of `cel-go/common/types/timestamp.go`.

use jiff::{
    SignedDuration,
    civil::{Date, Time},
};

/// Maximum number of digits behind a point that count. More can't change a nanosecond, even in hours.
const FRACTION_LEN_MAX: usize = 18;

/// Seconds since 1970 of the years 1 to 9999: the range of a CEL timestamp.
pub(crate) const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Units of a Go duration in nanoseconds. `ms` and the others with two letters come before `m` and `s`.
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

/// Parses an RFC 3339 timestamp between the years 1 and 9999. Returns the time since 1970 and the UTC offset in minutes.
///
/// Go is more lenient than the RFC: one digit for the hour and a comma before the fraction are accepted.
///
/// ```
/// let (since_1970, offset) = kctl_cel::timestamp("1970-01-01T02:00:01+02:00").unwrap();
/// assert_eq!((since_1970.as_secs(), offset), (1, 120));
/// assert!(kctl_cel::timestamp("2020-01-01").is_none());
/// ```
#[must_use]
pub fn timestamp(text: &str) -> Option<(SignedDuration, i64)> {
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

/// Returns the minutes of an offset `+01:00`. Go accepts 24 hours and 60 minutes in it.
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

/// Parses a Go duration (`time.ParseDuration`) such as `1h30m`, of less than 292 years.
///
/// ```
/// assert_eq!(kctl_cel::duration("1m.5s").unwrap().as_millis(), 60_500);
/// assert!(kctl_cel::duration("1d").is_none()); // Go has no unit for days
/// ```
#[must_use]
pub fn duration(text: &str) -> Option<SignedDuration> {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let (unit, length) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole: u64 = format!("0{whole}").parse().ok()?;
        nanoseconds += i128::from(whole) * length + part(fraction, *length);
        rest = &after[unit.len()..];
    }
    if text.starts_with('-') {
        nanoseconds = -nanoseconds;
    }
    i64::try_from(nanoseconds).ok().map(SignedDuration::from_nanos)
}

/// Returns the nanoseconds of a fraction of a unit, rounded down.
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
            assert_eq!(timestamp(text).is_some(), expected, "{text}");
        }
        let time = timestamp("1970-01-02T01:00:00.25+01:00");
        assert_eq!(time, Some((SignedDuration::new(24 * 60 * 60, 250_000_000), 60)));
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
            assert_eq!(duration(text).is_some(), expected, "{text}");
        }
        assert_eq!(duration("-1m.5s"), Some(SignedDuration::from_millis(-60_500)));
    }
}
