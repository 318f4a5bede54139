//! Checks of a request before its content: media type, length, and how long its client waits.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, Uri, header},
};
use http_body_util::BodyExt;
use kctl_apimachinery::duration;

use super::uid::UidScanner;
use crate::slots::{Slot, Slots};

/// The longest timeout that a webhook configuration can have; a request without a timeout gets it.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// Maximum number of bytes of a too long body that are read and dropped, so that the client gets to
/// read the error.
const REFUSED_LEN_MAX: usize = 64 << 20;

/// The reason why a body was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It has more bytes than the limit.
    #[error("the request has more than {len_max} bytes: the webhook reads no larger ones")]
    TooLong {
        /// The bound, in bytes.
        len_max: usize,
        /// `request.uid` of the review in the body; empty if it has none. API servers drop a response without it.
        uid: String,
    },
    /// The connection broke.
    #[error("the request can't be read: {0}")]
    Broken(#[source] axum::Error),
    /// Newer requests took its slot before it was complete.
    #[error("the rest of the request did not come, and other requests waited for its place: send it again")]
    TooSlow,
}

/// The phase of a request, for the error of one that took too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// It waits for other requests.
    #[default]
    Queued,
    /// Its body is being read.
    Receiving,
    /// It was read, and is among the running requests.
    Running,
}

/// Reads a body like [`read`], with at most as many others at a time as there are slots.
///
/// If all slots are taken, the body that has been incomplete the longest is given up. Keep the slot
/// until the request runs: a waiting body occupies memory.
///
/// `received` gets the bytes. It has those that came even if the body is given up, or this future is dropped at the
/// timeout of the request, so that [`uid_of`] finds the uid for the error.
///
/// ```
/// use axum::body::Body;
/// use kctl_webhook::{server::body::{Progress, read_in_slot}, slots::Slots};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kctl_webhook::server::body::BodyError> {
/// let (slots, mut progress, mut read) = (Slots::new(64), Progress::default(), Vec::new());
/// let slot = read_in_slot(&slots, Body::from("{}"), 1 << 20, &mut progress, &mut read).await?;
/// assert_eq!((read.as_slice(), progress), (b"{}".as_slice(), Progress::Queued));
/// drop(slot); // once the request runs
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`read`], and [`BodyError::TooSlow`].
pub async fn read_in_slot(
    slots: &Slots,
    body: Body,
    len_max: usize,
    progress: &mut Progress,
    received: &mut Vec<u8>,
) -> Result<Slot, BodyError> {
    *progress = Progress::Queued;
    let slot = slots.enter().await;
    *progress = Progress::Receiving;
    tokio::select! {
        body = read_into(received, body, len_max) => body?,
        () = slot.lost() => return Err(BodyError::TooSlow),
    }
    slot.works();
    *progress = Progress::Queued;
    Ok(slot)
}

/// Returns an error text if the media type is not `application/json`, in the words of Go's servers.
/// Parameters such as a charset are ignored.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
/// use kctl_webhook::server::body::not_json;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
/// assert_eq!(not_json(&headers), None);
/// headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
/// assert_eq!(not_json(&headers).as_deref(), Some("contentType=text/plain, expected application/json"));
/// ```
pub fn not_json(headers: &HeaderMap) -> Option<String> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let text = format!("contentType={content_type}, expected application/json");
    (!media.eq_ignore_ascii_case("application/json")).then_some(text)
}

/// Reads a body of at most `len_max` bytes.
///
/// ```
/// use axum::body::Body;
/// use kctl_webhook::server::body::{BodyError, read};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(read(Body::from("abc"), 3).await.unwrap(), b"abc");
/// assert!(matches!(read(Body::from("abcd"), 3).await, Err(BodyError::TooLong { len_max: 3, .. })));
/// # }
/// ```
///
/// # Errors
/// It is longer, or the connection broke. A body that is too long is still scanned for the uid of its request.
pub async fn read(body: Body, len_max: usize) -> Result<Vec<u8>, BodyError> {
    let mut read = Vec::new();
    read_into(&mut read, body, len_max).await?;
    Ok(read)
}

/// Reads a body like [`read`], to the end of `read`.
async fn read_into(read: &mut Vec<u8>, mut body: Body, len_max: usize) -> Result<(), BodyError> {
    let mut len = 0_usize;
    let mut scanner = UidScanner::default();
    while let Some(frame) = body.frame().await {
        let data = match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(_trailers)) => continue,
            Err(error) => return Err(BodyError::Broken(error)),
        };
        len = len.saturating_add(data.len());
        if len <= len_max {
            read.extend_from_slice(&data);
            continue;
        }
        scanner.feed(&std::mem::take(read));
        scanner.feed(&data);
        if len > len_max.max(REFUSED_LEN_MAX) {
            break;
        }
    }
    if len <= len_max { Ok(()) } else { Err(BodyError::TooLong { len_max, uid: scanner.into_uid() }) }
}

/// Returns `request.uid` of a review that can't be decoded; empty if it has none.
///
/// The rest of the body may be of a wrong type, or invalid JSON after the uid.
pub fn uid_of(body: &[u8]) -> String {
    let mut scanner = UidScanner::default();
    scanner.feed(body);
    scanner.into_uid()
}

/// Returns the timeout of a request: the query parameter that API servers add, `?timeout=3s`, as a
/// duration of Go.
///
/// At most [`TIMEOUT_MAX`], which is also the result for a request without one.
///
/// ```
/// use std::time::Duration;
/// use kctl_webhook::server::body::{TIMEOUT_MAX, time_of};
///
/// assert_eq!(time_of(&"/convert?timeout=1m3s".parse().unwrap()), TIMEOUT_MAX);
/// assert_eq!(time_of(&"/convert?timeout=500ms".parse().unwrap()), Duration::from_millis(500));
/// assert_eq!(time_of(&"/convert".parse().unwrap()), TIMEOUT_MAX);
/// ```
pub fn time_of(uri: &Uri) -> Duration {
    parsed(uri).unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX)
}

fn parsed(uri: &Uri) -> Option<Duration> {
    let text = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    Duration::try_from(duration::parse(text)?).ok().filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_is_parsed_as_a_go_duration() {
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

    #[tokio::test(start_paused = true)]
    async fn body_without_its_end_leaves_the_uid() {
        let begin = http_body_util::Full::from(r#"{"request":{"uid":"u1","object":"#);
        let body = Body::new(begin.with_trailers(std::future::pending()));
        let (slots, mut progress, mut received) = (Slots::new(1), Progress::default(), Vec::new());
        let reading = read_in_slot(&slots, body, 1000, &mut progress, &mut received);
        assert!(tokio::time::timeout(Duration::from_secs(1), reading).await.is_err());
        assert_eq!((uid_of(&received).as_str(), progress), ("u1", Progress::Receiving));
    }

    #[tokio::test]
    async fn body_over_the_limit_is_rejected() {
        for (len, is_read) in [(9, true), (10, true), (11, false)] {
            assert_eq!(read(Body::from(vec![0; len]), 10).await.is_ok(), is_read, "{len}");
        }
    }
}
