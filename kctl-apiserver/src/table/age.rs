//! Durations as the cells of a table have them: `3m5s`, `2d3h`, `<unknown>`, `<invalid>`.
//! Upstream: `HumanDuration` of `apimachinery/pkg/util/duration` and `ConvertToHumanReadableDateType` of
//! `apimachinery/pkg/api/meta/table`.
//!
//! The larger a duration, the coarser its form, so that a cell has at most two units:
//!
//! | duration | form |
//! |---|---|
//! | below 2 minutes | `110s` |
//! | below 10 minutes | `2m5s` |
//! | below 3 hours | `179m` |
//! | below 8 hours | `4h1m` |
//! | below 2 days | `47h` |
//! | below 8 days | `2d1h` |
//! | below 2 years | `729d` |
//! | below 8 years | `2y5d` |
//! | more | `10y` |

use jiff::Timestamp;
use serde_json::Value;

use super::fields::text;

/// The cell for a time that is not set.
pub(crate) const UNKNOWN: &str = "<unknown>";
/// The cell for a time in the future or an invalid date.
pub(crate) const INVALID: &str = "<invalid>";

/// Seconds of a minute; the following constants are in seconds, too.
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Seconds of 365 days: upstream ignores leap years.
const YEAR: i64 = 365 * DAY;

/// Returns the age of an object by its creation.
pub(crate) fn age(object: &Value, now: Timestamp) -> String {
    since_text(text(object, "/metadata/creationTimestamp"), now)
}

/// Returns how long ago a timestamp was, or [`UNKNOWN`] if it is unset or invalid.
pub(crate) fn since_text(time: &str, now: Timestamp) -> String {
    time_of(time).map_or_else(|| UNKNOWN.to_owned(), |time| since(time, now))
}

/// Returns how long ago `time` was.
pub(crate) fn since(time: Timestamp, now: Timestamp) -> String {
    // Upstream's durations are 64 bits of nanoseconds and stop at 292 years.
    let nanos = (now.as_nanosecond() - time.as_nanosecond()).clamp(i64::MIN.into(), i64::MAX.into());
    human(i64::try_from(nanos / 1_000_000_000).unwrap_or_default())
}

/// Parses a timestamp; `None` if it is invalid or Go's zero time.
pub(crate) fn time_of(text: &str) -> Option<Timestamp> {
    (!text.starts_with("0001-01-01T00:00:00")).then(|| text.parse().ok()).flatten()
}

/// Returns `true` for a timestamp in the form of RFC 3339. The parser accepts more forms than kube-apiserver.
pub(crate) fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    marks.iter().all(|(idx, mark)| bytes.get(*idx) == Some(mark))
        && !text.contains(['[', 'z', ','])
        && text.parse::<Timestamp>().is_ok()
}

/// Formats seconds in at most two units; the larger the duration, the coarser. Negative durations are invalid, except
/// one second of clock skew.
pub(crate) fn human(seconds: i64) -> String {
    match seconds {
        ..-1 => INVALID.to_owned(),
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
    }
}

/// Formats seconds as a count of the large unit and the rest in the small one; a rest of zero is left out.
fn two_units(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    match seconds % large / small {
        0 => format!("{}{large_name}", seconds / large),
        rest => format!("{}{large_name}{rest}{small_name}", seconds / large),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line was read from a date column of a real server.
    #[test]
    fn durations_lose_units_as_they_grow() {
        let observed = [
            (-30, "<invalid>"),
            (-3, "<invalid>"),
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
            assert_eq!(human(seconds), expected, "{seconds} seconds");
        }
    }

    #[test]
    fn clock_that_is_a_second_behind_shows_zero() {
        assert_eq!(human(-1), "0s");
    }

    #[test]
    fn a_missing_time_is_unknown() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(since_text("", now), UNKNOWN);
        assert_eq!(since_text("0001-01-01T00:00:00Z", now), UNKNOWN);
        assert_eq!(since_text("0800-01-01T00:00:00Z", now), "292y");
    }
}
