//! Times that Kubernetes accepts: RFC 3339 as Go parses it (`Parse` in `time/format.go`), which accepts slightly more.

/// The layout of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A time with seconds and an optional fraction (`metav1.Time`).
    Seconds,
    /// A time with six digits after the seconds (`metav1.MicroTime`).
    Micros,
}

/// Returns `true` if a string is a time.
///
/// No characters may follow the time.
pub(super) fn is_time(text: &str, layout: Layout) -> bool {
    read(text, layout).is_some_and(str::is_empty)
}

/// Returns the rest after a time.
///
/// Years have four digits, so times before year 0 and after 9999 are rejected.
fn read(text: &str, layout: Layout) -> Option<&str> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = ranged(rest.strip_prefix('-')?, 1..=12)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let rest = rest.strip_prefix('T')?;
    // Only the hour may have one digit.
    let (_, rest) = digits(rest, 2).or_else(|| digits(rest, 1)).filter(|(hour, _)| *hour < 24)?;
    let (_, rest) = ranged(rest.strip_prefix(':')?, 0..=59)?;
    let (_, rest) = ranged(rest.strip_prefix(':')?, 0..=59)?;
    let rest = zone(fraction(rest, layout)?)?;
    (1..=days(year, month)).contains(&day).then_some(rest)
}

/// Parses a number with this many digits. Returns it with the rest.
fn digits(text: &str, n_digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(n_digits)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| (number.parse().unwrap_or_default(), rest))
}

/// Parses two digits within a range.
fn ranged(text: &str, range: std::ops::RangeInclusive<u32>) -> Option<(u32, &str)> {
    digits(text, 2).filter(|(number, _)| range.contains(number))
}

/// Skips the fraction of a second.
///
/// A comma is accepted in place of the point.
fn fraction(text: &str, layout: Layout) -> Option<&str> {
    let after = text.strip_prefix(['.', ',']);
    match layout {
        Layout::Micros => after.and_then(|after| digits(after, 6)).map(|(_, rest)| rest),
        Layout::Seconds => Some(match after.map(|after| after.trim_start_matches(|c: char| c.is_ascii_digit())) {
            // A point without a digit after it does not start a fraction.
            Some(rest) if rest.len() + 1 < text.len() => rest,
            _ => text,
        }),
    }
}

/// Skips the time zone.
///
/// `Z` in upper case, or an offset with a colon.
fn zone(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some(rest);
    }
    let (hours, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
    (hours <= 24 && minutes <= 60).then_some(rest)
}

/// Returns the number of days of a month.
fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for text in
            ["2020-01-01T00:00:00Z", "2020-02-29T23:59:59.5+01:00", "2020-01-01T00:00:00,5Z", "2020-01-01T1:00:00Z"]
        {
            assert!(is_time(text, Layout::Seconds), "{text}");
        }
        assert!(is_time("2020-01-01T00:00:00.000001Z", Layout::Micros));
        for text in ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.1Z", "2020-01-01T00:00:00.123456789Z"] {
            assert!(!is_time(text, Layout::Micros), "{text}");
        }
        for text in [
            "x",
            "",
            "2020-01-01",
            "2020-01-01 00:00:00Z",
            "2020-13-01T00:00:00Z",
            "2021-02-29T00:00:00Z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:60:00Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00",
            "2020-01-01T00:00:00Zx",
            "2020-01-01T00:00:00+25:00",
        ] {
            assert!(!is_time(text, Layout::Seconds), "{text}");
        }
    }
}
