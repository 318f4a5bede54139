//! Checks of a request before its content: media type, length, and how long its client waits.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, Uri, header},
};
use http_body_util::BodyExt;
use kctl_apimachinery::duration;

use super::{
    memory::{HeldMemory, Memory, NoRoom},
    request::Progress,
    uid::UidScanner,
};
use crate::client_limiter::{ClientLimiter, ClientPermit};

/// The longest timeout that a webhook configuration can have; a request without a timeout gets it.
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// The longest time between the response to a slow request and the timeout of its client.
const RESPONSE_LEAD_MAX: Duration = Duration::from_millis(500);
/// Maximum number of bytes of a too long body that are read and dropped, so that the client gets to
/// read the error.
const REJECTED_LEN_MAX: usize = 64 << 20;

/// The reason why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// It has more bytes than the limit.
    #[error("the request has more than {len_max} bytes: the webhook reads no larger ones")]
    TooLong {
        /// The bound, in bytes.
        len_max: usize,
        /// `request.uid` of the review in the body; empty if it has none. API servers drop a response without it
        /// (`VerifyAdmissionResponse` in `k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`).
        uid: String,
    },
    /// The connection broke.
    #[error("the request can't be read: {0}")]
    Broken(#[source] axum::Error),
    /// Other requests needed its place or its memory before it was complete.
    #[error("the rest of the request did not come, and other requests waited for its place: send it again")]
    TooSlow,
    /// Other bodies have all the memory.
    #[error("other requests have {bytes_max} bytes, which is the limit for all together: send it again")]
    NoRoom {
        /// The bound on the bytes of all bodies.
        bytes_max: usize,
    },
}

impl BodyError {
    /// Returns the HTTP code for the reason.
    pub(super) fn code(&self) -> StatusCode {
        match self {
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom { .. } => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// Returns the uid of a request whose bytes were dropped.
    pub(super) fn uid(&self) -> Option<&str> {
        match self {
            Self::TooLong { uid, .. } => Some(uid),
            Self::Broken(_) | Self::TooSlow | Self::NoRoom { .. } => None,
        }
    }
}

/// The bodies that a server reads at the same time: bounds on their number, and on the total bytes of bodies and
/// running requests.
#[derive(Clone, Debug)]
pub(super) struct Bodies {
    /// Permits of bodies that are being read. At the bound the body that has been incomplete the longest is given up.
    pub(super) limiter: ClientLimiter,
    /// The bytes of bodies that are read or whose requests run.
    pub(super) memory: Memory,
}

impl Bodies {
    /// Reads a body of at most `len_max` bytes. Keep the permit until the request runs, and the memory until its response
    /// is sent.
    ///
    /// `received` gets the bytes. It has the bytes that arrived even if the body is given up, or this future is dropped
    /// at the timeout of the request. So [`uid_of`] finds the uid for the error.
    ///
    /// # Errors
    /// The body is longer, the connection broke, or the body gave way to others. A body that is too long is still
    /// scanned for the uid of its request.
    pub(super) async fn read(
        &self,
        body: Body,
        len_max: usize,
        progress: &mut Progress,
        received: &mut Vec<u8>,
    ) -> Result<(ClientPermit, HeldMemory), BodyError> {
        *progress = Progress::Queued;
        let permit = self.limiter.acquire().await;
        *progress = Progress::Receiving;
        let mut held = HeldMemory::default();
        tokio::select! {
            body = self.read_into(received, body, len_max, &permit, &mut held) => body?,
            () = permit.wait_until_evicted() => return Err(BodyError::TooSlow),
        }
        permit.set_busy();
        *progress = Progress::Queued;
        Ok((permit, held))
    }

    /// Reads a body to the end of `read`.
    async fn read_into(
        &self,
        read: &mut Vec<u8>,
        mut body: Body,
        len_max: usize,
        permit: &ClientPermit,
        held: &mut HeldMemory,
    ) -> Result<(), BodyError> {
        let len_max = len_max.min(self.memory.max());
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
                let taken = self.memory.take(held, data.len(), &self.limiter, permit).await;
                taken.map_err(|NoRoom| BodyError::NoRoom { bytes_max: self.memory.max() })?;
                read.extend_from_slice(&data);
                continue;
            }
            scanner.feed(&std::mem::take(read));
            held.clear();
            scanner.feed(&data);
            if len > len_max.max(REJECTED_LEN_MAX) {
                break;
            }
        }
        if len <= len_max { Ok(()) } else { Err(BodyError::TooLong { len_max, uid: scanner.into_uid() }) }
    }
}

/// Returns an error text if the media type is not `application/json`, in the words of controller-runtime (`ServeHTTP` in
/// `pkg/webhook/admission/http.go`). Parameters such as a charset are ignored, unlike there.
pub(super) fn not_json(headers: &HeaderMap) -> Option<String> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let text = format!("contentType={content_type}, expected application/json");
    (!media.eq_ignore_ascii_case("application/json")).then_some(text)
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
/// duration of Go (`callAttrMutatingHook` in `k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go`, by
/// `Request.Timeout` in `k8s.io/client-go/rest/request.go`).
///
/// At most [`TIMEOUT_MAX`], which is also the result for a request without one.
pub(super) fn request_timeout(uri: &Uri) -> Duration {
    parse_timeout(uri).unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX)
}

/// Returns the time after which a request with this timeout gets its response: a tenth earlier, at most
/// [`RESPONSE_LEAD_MAX`].
///
/// The client's timeout starts before the request arrives, and ends before it reads a response that is sent at its end.
pub(super) fn respond_within(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / 10).min(RESPONSE_LEAD_MAX))
}

fn parse_timeout(uri: &Uri) -> Option<Duration> {
    let text = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    Duration::try_from(duration::parse(text)?).ok().filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use bytes::Bytes;
    use futures::StreamExt;
    use tokio::time::sleep;

    use super::*;

    fn bodies(bytes_max: usize) -> Bodies {
        Bodies { limiter: ClientLimiter::new(8), memory: Memory::new(bytes_max) }
    }

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
            assert_eq!(parse_timeout(&uri.parse().unwrap()), millis.map(Duration::from_millis), "{uri}");
        }
    }

    #[test]
    fn timeout_is_capped_at_configurable_maximum() {
        let time = |uri: &str| request_timeout(&uri.parse().unwrap());
        assert_eq!(time("/convert?timeout=1m3s"), TIMEOUT_MAX);
        assert_eq!(time("/convert?timeout=500ms"), Duration::from_millis(500));
        assert_eq!(time("/convert"), TIMEOUT_MAX);
    }

    #[test]
    fn response_precedes_the_timeout_of_its_client() {
        for (timeout, expected) in [(500, 450), (1_000, 900), (5_000, 4_500), (10_000, 9_500), (30_000, 29_500)] {
            let within = respond_within(Duration::from_millis(timeout));
            assert_eq!(within, Duration::from_millis(expected), "{timeout} ms");
        }
    }

    #[test]
    fn media_type_must_be_json() {
        let of = |value: &'static str| HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))]);
        assert_eq!(not_json(&of("application/json; charset=utf-8")), None);
        let error = not_json(&of("text/plain"));
        assert_eq!(error.as_deref(), Some("contentType=text/plain, expected application/json"));
    }

    #[tokio::test(start_paused = true)]
    async fn body_without_its_end_leaves_the_uid() {
        let begin = http_body_util::Full::from(r#"{"request":{"uid":"u1","object":"#);
        let body = Body::new(begin.with_trailers(std::future::pending()));
        let (bodies, mut progress, mut received) = (bodies(1000), Progress::default(), Vec::new());
        let reading = bodies.read(body, 1000, &mut progress, &mut received);
        assert!(tokio::time::timeout(Duration::from_secs(1), reading).await.is_err());
        assert_eq!((uid_of(&received).as_str(), progress), ("u1", Progress::Receiving));
    }

    #[tokio::test]
    async fn body_over_the_limit_is_rejected() {
        for (len, len_max, bytes_max, is_read) in
            [(9, 10, 99, true), (10, 10, 99, true), (11, 10, 99, false), (10, 99, 10, true), (11, 99, 10, false)]
        {
            let (mut progress, mut received) = (Progress::default(), Vec::new());
            let body = Body::from(vec![0; len]);
            let read = bodies(bytes_max).read(body, len_max, &mut progress, &mut received).await;
            assert_eq!(read.is_ok(), is_read, "{len}");
            assert!(is_read || matches!(read, Err(BodyError::TooLong { len_max: 10, .. })), "{read:?}");
        }
    }

    /// Returns a body that is sent in two pieces, the second one when the sender is used.
    fn halves(first: usize, second: usize) -> (tokio::sync::oneshot::Sender<()>, Body) {
        let (send, sent) = tokio::sync::oneshot::channel();
        let piece =
            |len: usize| Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from(vec![b' '; len])));
        let begun = futures::stream::iter([piece(first)]);
        let rest = futures::stream::once(async move {
            let _sent = sent.await;
            piece(second)
        });
        (send, Body::new(http_body_util::StreamBody::new(begun.chain(rest))))
    }

    /// Reads a body in its own task, and returns the number of bytes, which are held as long as the value.
    fn reading(bodies: &Bodies, body: Body) -> tokio::task::JoinHandle<Result<(usize, HeldMemory), BodyError>> {
        let bodies = bodies.clone();
        tokio::spawn(async move {
            let (mut progress, mut received) = (Progress::default(), Vec::new());
            let (_permit, held) = bodies.read(body, usize::MAX, &mut progress, &mut received).await?;
            Ok((received.len(), held))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_wait_for_each_other_end() {
        let bodies = bodies(100);
        let (senders, halves): (Vec<_>, Vec<_>) = [halves(50, 40), halves(50, 40)].into_iter().unzip();
        let begun: Vec<_> = halves.into_iter().map(|body| reading(&bodies, body)).collect();
        sleep(Duration::from_millis(1)).await;
        for sender in senders {
            sender.send(()).unwrap();
            sleep(Duration::from_millis(500)).await;
        }
        let [first, second] = <[_; 2]>::try_from(begun).unwrap();
        assert!(matches!(first.await.unwrap(), Err(BodyError::NoRoom { bytes_max: 100 })), "it waited for 5 s");
        assert_eq!(second.await.unwrap().unwrap().0, 90);
    }

    #[tokio::test(start_paused = true)]
    async fn running_request_keeps_the_bytes_of_its_body() {
        let bodies = bodies(100);
        let (_len, held) = reading(&bodies, Body::from(vec![b' '; 60])).await.unwrap().unwrap();
        let rejected = reading(&bodies, Body::from(vec![b' '; 41])).await.unwrap();
        assert!(matches!(rejected, Err(BodyError::NoRoom { .. })), "{rejected:?}");
        let waits = reading(&bodies, Body::from(vec![b' '; 41]));
        sleep(Duration::from_secs(4)).await;
        drop(held);
        assert_eq!(waits.await.unwrap().unwrap().0, 41);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_body_gives_way_to_one_without_room() {
        let bodies = bodies(100);
        let (_silent, half) = halves(90, 1);
        let silent = reading(&bodies, half);
        sleep(Duration::from_millis(1)).await;
        let (len, _held) = reading(&bodies, Body::from(vec![b' '; 50])).await.unwrap().unwrap();
        assert_eq!(len, 50);
        let silent = tokio::time::timeout(Duration::from_secs(60), silent).await.expect("it gives way");
        assert!(matches!(silent.unwrap(), Err(BodyError::TooSlow)));
    }
}
