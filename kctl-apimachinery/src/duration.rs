//! Durations: parsed as Go does, and printed as the ages in tables of kubectl.
//!
//! Upstream: `time.ParseDuration` of Go, `k8s.io/apimachinery/pkg/util/duration` (`HumanDuration`).
//!
//! ```
//! use kctl_apimachinery::duration;
//!
//! let uptime = duration::parse("1h1m5s").unwrap();
//! assert_eq!(duration::human(uptime.as_secs()).as_deref(), Some("61m"));
//! ```

use jiff::SignedDuration;

/// Maximum number of digits of a fraction that are used. More can't change a nanosecond, even in hours.
const FRACTION_LEN_MAX: usize = 18;

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

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Parses a duration such as `1h30m`, of less than 292 years (`time.ParseDuration`).
///
/// The units are `ns`, `us`, `ms`, `s`, `m` and `h`. A number needs a unit, except `0`.
///
/// ```
/// use kctl_apimachinery::duration;
///
/// assert_eq!(duration::parse("1m.5s").unwrap().as_millis(), 60_500);
/// assert!(duration::parse("-3s").unwrap().is_negative());
/// assert!(duration::parse("1d").is_none()); // Go has no unit for days
/// ```
#[must_use]
pub fn parse(text: &str) -> Option<SignedDuration> {
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

/// Formats seconds as `kubectl get` shows an age: in at most two units, with coarser units for larger ages
/// (`HumanDuration`).
///
/// Returns `None` for a negative duration, which tables show as `<invalid>`. One second below zero is clock skew and
/// counts as 0.
///
/// ```
/// use kctl_apimachinery::duration;
///
/// let shown = |seconds| duration::human(seconds).unwrap();
/// assert_eq!((shown(119), shown(125), shown(3600)), ("119s".into(), "2m5s".into(), "60m".into()));
/// assert_eq!((shown(100_000), shown(200_000)), ("27h".into(), "2d7h".into()));
/// assert_eq!(duration::human(-2), None);
/// ```
#[must_use]
pub fn human(seconds: i64) -> Option<String> {
    Some(match seconds {
        ..-1 => return None,
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    })
}

/// Formats seconds as a count of the large unit and the rest in the small one; a rest of zero is left out.
fn two_units(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    match seconds % large / small {
        0 => format!("{}{large_name}", seconds / large),
        rest => format!("{}{large_name}{rest}{small_name}", seconds / large),
    }
}

/// Returns the nanoseconds of a fraction of a unit, rounded down.
pub(crate) fn part(fraction: &str, length: i128) -> i128 {
    let digits: String = fraction.chars().take(FRACTION_LEN_MAX).collect();
    let scale = digits.chars().fold(1, |scale, _| scale * 10);
    digits.parse::<i128>().map_or(0, |digits| digits * length / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks values that were read from an age column of a real server.
    #[test]
    fn durations_lose_units_as_they_grow() {
        let observed = [
            (-1, "0s"),
            (30, "30s"),
            (110, "110s"),
            (125, "2m5s"),
            (185, "3m5s"),
            (300, "5m"),
            (610, "10m"),
            (3605, "60m"),
            (10_790, "179m"),
            (10_805, "3h"),
            (14_405, "4h"),
            (14_465, "4h1m"),
            (28_805, "8h"),
            (172_780, "47h"),
            (172_820, "2d"),
            (176_420, "2d1h"),
            (691_180, "7d23h"),
            (691_220, "8d"),
            (777_600, "9d"),
            (63_071_980, "729d"),
            (63_072_020, "2y"),
            (63_504_000, "2y5d"),
            (252_287_980, "7y364d"),
            (252_288_020, "8y"),
            (315_360_000, "10y"),
        ];
        for (seconds, expected) in observed {
            assert_eq!(human(seconds).as_deref(), Some(expected), "{seconds} seconds");
        }
        assert_eq!((human(-2), human(-30)), (None, None));
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
            assert_eq!(parse(text).is_some(), expected, "{text}");
        }
        assert_eq!(parse("-1m.5s"), Some(SignedDuration::from_millis(-60_500)));
    }
}
