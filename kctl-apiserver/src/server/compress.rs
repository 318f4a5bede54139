//! Compresses large responses with gzip, outside of the server's lock.
//!
//! Upstream: `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`; checked against kube-apiserver. `OpenAPI`
//! v3 documents and watches are never compressed there, at any length.

use std::{convert::Infallible, io::Write, mem};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures::{FutureExt, Stream, stream};
use http::{HeaderMap, HeaderValue, Response, header, request::Parts};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};

use crate::response::Body;

/// Responses up to this many bytes are not compressed (`defaultGzipThresholdBytes`): that would take longer than
/// sending them.
const PLAIN_LEN_MAX: u64 = 128 * 1024;

/// The number of bytes that are compressed between two yields to other tasks: less than a millisecond of work.
const PIECE_LEN: usize = 64 * 1024;

/// Returns the response, compressed if it is large and its client accepts gzip. `Vary: Accept-Encoding` prevents caches
/// from sending the compressed form to other clients.
pub(super) fn compress(request: &Parts, response: Response<Body>) -> Response<Body> {
    // The body of a watch has no length yet.
    let is_large = response.body().size_hint().exact().is_some_and(|len| len > PLAIN_LEN_MAX);
    if !is_large || !accepts_gzip(&request.headers) || request.uri.path().starts_with("/openapi/v3") {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Some(Ok(collected)) = body.collect().now_or_never() else { unreachable!("a body with a length is there") };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    if !head.headers.get_all(header::VARY).iter().any(|value| value == "Accept-Encoding") {
        head.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Response::from_parts(head, StreamBody::new(gzip(collected.to_bytes())).boxed_unsync())
}

/// Returns the compressed body as a stream that compresses as it is read. A large list then blocks no thread, and its
/// first bytes are sent early. The fastest level is used, as by kube-apiserver (`gzipContentEncodingLevel`).
fn gzip(plain: Bytes) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    stream::unfold((plain, Some(encoder)), async |(mut plain, encoder)| {
        let mut encoder = encoder?;
        while !plain.is_empty() {
            tokio::task::yield_now().await;
            let piece = plain.split_to(plain.len().min(PIECE_LEN));
            encoder.write_all(&piece).unwrap_or_else(|error| unreachable!("a vector takes all bytes: {error}"));
            let compressed = mem::take(encoder.get_mut());
            if !compressed.is_empty() {
                return Some((Ok(Frame::data(compressed.into())), (plain, Some(encoder))));
            }
        }
        let rest = encoder.finish().unwrap_or_else(|error| unreachable!("a vector takes all bytes: {error}"));
        Some((Ok(Frame::data(rest.into())), (plain, None)))
    })
}

/// Returns `true` if `Accept-Encoding` contains the word `gzip`. Only the first header counts, weights are not parsed,
/// and upper case does not match, as in `ContentEncodingSupported`
/// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/compression.go`).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|encoding| encoding.trim() == "gzip"))
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use flate2::read::GzDecoder;
    use http::{Request, StatusCode};

    use super::*;
    use crate::response::{full, respond};

    fn request_for(path: &str, accepted: &str) -> Parts {
        Request::get(path).header("accept-encoding", accepted).body(()).unwrap().into_parts().0
    }

    #[tokio::test(start_paused = true)]
    async fn compression_yields_to_other_tasks() {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let n_pieces = 40;
        let response = respond(StatusCode::OK, "application/json", full(vec![b' '; n_pieces * PIECE_LEN]));
        bytes_of(compress(&request_for("/api/v1/pods", "gzip"), response)).await;
        other.abort();
        assert!(turns.load(Ordering::Relaxed) >= n_pieces, "{turns:?} turns");
    }

    async fn bytes_of(response: Response<Body>) -> Vec<u8> {
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn large_responses_are_compressed_on_request() {
        for (len, path, accepted, is_compressed) in [
            (131_072, "/api/v1/pods", "gzip", false),
            (131_073, "/api/v1/pods", "gzip", true),
            (131_073, "/api/v1/pods", "deflate, gzip", true),
            (131_073, "/api/v1/pods", "gzip;q=1.0", false),
            (131_073, "/api/v1/pods", "GZIP", false),
            (131_073, "/api/v1/pods", "*", false),
            (131_073, "/api/v1/pods", "identity;q=1,gzip;q=0", false),
            (131_073, "/openapi/v2", "gzip", true),
            (131_073, "/openapi/v3/api/v1", "gzip", false),
            (5_000_001, "/api/v1/pods", "gzip", true),
        ] {
            let plain: Vec<u8> = b"pod ".iter().copied().cycle().take(len).collect();
            let response = respond(StatusCode::OK, "application/json", full(plain.clone()));
            let response = compress(&request_for(path, accepted), response);
            let named = |name: header::HeaderName| response.headers().get(name).map(|value| value.to_str().unwrap());
            let expected = is_compressed.then_some("gzip");
            assert_eq!(named(header::CONTENT_ENCODING), expected, "{len} {path} {accepted}");
            assert_eq!(named(header::VARY), expected.map(|_| "Accept-Encoding"), "{len} {path} {accepted}");
            let sent = bytes_of(response).await;
            if !is_compressed {
                assert_eq!(sent, plain, "{len} {path} {accepted}");
                continue;
            }
            assert!(sent.len() < len / 10, "{} bytes", sent.len());
            let mut read = Vec::new();
            GzDecoder::new(sent.as_slice()).read_to_end(&mut read).unwrap();
            assert_eq!(read, plain, "{path} {accepted}");
        }
    }
}
