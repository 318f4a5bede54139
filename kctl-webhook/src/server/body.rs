//! What every webhook checks of a request before its content: its media type, its length, and how long its client waits.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, Uri, header},
};
use http_body_util::BodyExt;

use crate::slots::{Slot, Slots};

/// The longest timeout that a configuration can have; a request without one gets it.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// What of a body that is too long is read and thrown away, so that the client gets to read why it was refused.
const REFUSED_LEN_MAX: usize = 64 << 20;

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is longer than what is read.
    #[error("the request has more than {0} bytes: the webhook reads no larger ones")]
    TooLong(usize),
    /// The connection broke.
    #[error("the request can't be read: {0}")]
    Broken(#[source] axum::Error),
    /// Newer requests needed its place before it was complete.
    #[error("the rest of the request did not come, and other requests waited for its place: send it again")]
    TooSlow,
}

/// How far a request has come, for the error of one that took too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// It waits until another request has been answered.
    #[default]
    Queued,
    /// Its body is read.
    Receiving,
    /// It has been read, and has its place among those that run.
    Running,
}

/// Reads a body as [`read`], with so many others at a time as there are slots. At that bound the body that is incomplete for
/// longest is given up. The slot is kept until the request runs: what waits for that holds memory.
///
/// # Errors
/// As [`read`], and [`BodyError::TooSlow`].
pub async fn read_in_slot(
    slots: &Slots,
    body: Body,
    len_max: usize,
    progress: &mut Progress,
) -> Result<(Vec<u8>, Slot), BodyError> {
    *progress = Progress::Queued;
    let slot = slots.enter().await;
    *progress = Progress::Receiving;
    let body = tokio::select! {
        body = read(body, len_max) => body?,
        () = slot.lost() => return Err(BodyError::TooSlow),
    };
    slot.works();
    *progress = Progress::Queued;
    Ok((body, slot))
}

/// Why a request is not taken for JSON, in the words of Go's servers. A charset may stand behind the type.
pub fn not_json(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = given.split(';').next().unwrap_or_default().trim();
    let text = format!("contentType={given}, expected application/json");
    (!media.eq_ignore_ascii_case("application/json")).then_some(text)
}

/// Reads a body of at most so many bytes.
///
/// # Errors
/// It is longer, or the connection broke.
pub async fn read(mut body: Body, len_max: usize) -> Result<Vec<u8>, BodyError> {
    let mut read = Vec::new();
    let mut len = 0_usize;
    while let Some(frame) = body.frame().await {
        let data = match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(_trailers)) => continue,
            Err(error) => return Err(BodyError::Broken(error)),
        };
        len = len.saturating_add(data.len());
        match len {
            len if len <= len_max => read.extend_from_slice(&data),
            len if len > len_max.max(REFUSED_LEN_MAX) => break,
            _ => read = Vec::new(),
        }
    }
    if len <= len_max { Ok(read) } else { Err(BodyError::TooLong(len_max)) }
}

/// `?timeout=3s`, as API servers write it: a duration of Go. At most [`TIMEOUT_MAX`], which is also that of a request without.
pub fn time_of(uri: &Uri) -> Duration {
    parsed(uri).unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX)
}

fn parsed(uri: &Uri) -> Option<Duration> {
    let text = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match &rest[digits..end] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(u32::try_from(number).ok()?)?)?;
        rest = &rest[end..];
    }
    (!total.is_zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_duration_of_go_and_anything_else_is_none() {
        let cases = [
            ("/a", None),
            ("/a?timeout=3s", Some(3_000)),
            ("/a?x=1&timeout=1m30s", Some(90_000)),
            ("/a?timeout=500ms", Some(500)),
            ("/a?timeout=", None),
            ("/a?timeout=0s", None),
            ("/a?timeout=3", None),
            ("/a?timeout=3x", None),
            ("/a?timeout=-3s", None),
            ("/a?timeout=99999999999999999999s", None),
        ];
        for (uri, millis) in cases {
            assert_eq!(parsed(&uri.parse().unwrap()), millis.map(Duration::from_millis), "{uri}");
        }
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound_and_refused_over_it() {
        for (len, is_read) in [(9, true), (10, true), (11, false)] {
            assert_eq!(read(Body::from(vec![0; len]), 10).await.is_ok(), is_read, "{len}");
        }
    }
}
