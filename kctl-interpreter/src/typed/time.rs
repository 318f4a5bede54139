//! Times, read and printed as Go and `metav1.Time` do.

use jiff::Timestamp;
use serde_json::Value;

/// Reads an RFC 3339 time, with all digits of its fraction, and returns it in UTC; `None` for Go's
/// zero time.
///
/// # Errors
/// The message of Go's `time.Parse`. Forms of ISO 8601 that RFC 3339 does not have are rejected.
pub(super) fn parse(text: &str) -> Result<Option<Timestamp>, String> {
    let failed = || format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse it");
    let bytes = text.as_bytes();
    // The parser accepts more of ISO 8601 than Go's layout: spaces, lower case, missing colons.
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(byte, shape): (&u8, &u8)| if *shape == b'd' { byte.is_ascii_digit() } else { byte == shape };
    if bytes.len() <= shape.len() || !bytes.iter().zip(shape).all(fits) {
        return Err(failed());
    }
    let zone = text[shape.len()..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',');
    let is_offset = zone.len() == 6 && zone.starts_with(['+', '-']) && zone.as_bytes()[3] == b':';
    if zone != "Z" && !is_offset {
        return Err(failed());
    }
    if text == "0001-01-01T00:00:00Z" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| failed())
}

/// Removes the fraction of a second, as `metav1.Time` prints a time.
pub(super) fn to_the_second(text: &str) -> String {
    text.split_once('.').map_or_else(|| text.to_owned(), |(seconds, _fraction)| format!("{seconds}Z"))
}

/// Returns `true` if one decoded time is before another. A nil time is neither before nor after any
/// time.
pub(crate) fn before(left: &Value, right: &Value) -> bool {
    let read = |time: &Value| time.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    read(left).zip(read(right)).is_some_and(|(left, right)| left < right)
}

/// Returns the time of the wall clock, without a fraction of a second.
pub(crate) fn now() -> Value {
    to_the_second(&Timestamp::now().to_string()).into()
}
