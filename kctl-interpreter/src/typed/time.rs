//! Times, read and printed as Go and `metav1.Time` do (`UnmarshalJSON` and `MarshalJSON` in
//! `k8s.io/apimachinery/pkg/apis/meta/v1/time.go`).

use jiff::Timestamp;
use kctl_apimachinery::time;
use serde_json::Value;

/// Reads an RFC 3339 time, with all digits of its fraction, and returns it in UTC; `None` for Go's
/// zero time.
///
/// # Errors
/// The message of Go's `time.Parse`. Forms of ISO 8601 that RFC 3339 does not have are rejected.
pub(super) fn parse(text: &str) -> Result<Option<Timestamp>, String> {
    if text == "0001-01-01T00:00:00Z" {
        return Ok(None);
    }
    let failed = || format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse it");
    time::parse(text).map(Some).ok_or_else(failed)
}

/// Removes the fraction of a second, as `metav1.Time` prints a time.
pub(super) fn to_the_second(text: &str) -> String {
    text.split_once('.').map_or_else(|| text.to_owned(), |(seconds, _fraction)| format!("{seconds}Z"))
}

/// Returns `true` if one decoded time is before another. A nil time is neither before nor after any
/// time.
pub(crate) fn is_before(left: &Value, right: &Value) -> bool {
    let read = |value: &Value| value.as_str().and_then(time::parse);
    read(left).zip(read(right)).is_some_and(|(left, right)| left < right)
}

/// Returns the time of the wall clock, without a fraction of a second.
pub(crate) fn now() -> Value {
    time::seconds(Timestamp::now()).into()
}
