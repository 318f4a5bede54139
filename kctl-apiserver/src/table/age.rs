//! Durations as the cells of a table have them: `3m5s`, `2d3h`, `<unknown>`, `<invalid>`.
//!
//! Upstream: `HumanDuration` of `apimachinery/pkg/util/duration` and `ConvertToHumanReadableDateType` of
//! `apimachinery/pkg/api/meta/table`.

use jiff::Timestamp;
use kctl_apimachinery::{duration, time};
use serde_json::Value;

use super::fields::text;

/// The cell for a time that is not set.
pub(crate) const UNKNOWN: &str = "<unknown>";
/// The cell for a time in the future or an invalid date.
pub(crate) const INVALID: &str = "<invalid>";

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
    time::parse(text).filter(|_| !text.starts_with("0001-01-01T00:00:00"))
}

/// Formats seconds as an age, or as [`INVALID`] if they are negative.
pub(crate) fn human(seconds: i64) -> String {
    duration::human(seconds).unwrap_or_else(|| INVALID.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_of_missing_time_is_unknown() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(since_text("", now), UNKNOWN);
        assert_eq!(since_text("0001-01-01T00:00:00Z", now), UNKNOWN);
        assert_eq!(since_text("0800-01-01T00:00:00Z", now), "292y");
    }
}
