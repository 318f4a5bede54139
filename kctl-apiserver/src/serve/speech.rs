//! HTTP on one connection: versions 1 and 2, and how long a client may take for the head of a request.

use std::{io::Cursor, time::Duration};

use bytes::Bytes;
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    time::timeout,
};

/// A client has this long for the head of its request, and for the preface of version 2: `ReadHeaderTimeout` of the real
/// server. One that has begun a connection of version 2 answers a ping within it.
pub(super) const HEAD_WITHIN: Duration = Duration::from_secs(32);
/// What every connection of version 2 begins with.
const PREFACE_LEN: usize = 24;

/// The versions of HTTP, of which TLS has agreed on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// Speaks with a client until it goes, or takes too long.
pub(super) async fn speak<S, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    version: Version,
    service: S,
) where
    S: Service<http::Request<Incoming>, Response = http::Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if version == Version::One {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
        // A client that goes away in the middle is no event.
        let _closed = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        return;
    }
    let mut builder = auto::Builder::new(TokioExecutor::new()).http2_only();
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD_WITHIN).keep_alive_timeout(HEAD_WITHIN);
    let (mut reader, writer) = tokio::io::split(stream);
    let mut preface = [0; PREFACE_LEN];
    if !matches!(timeout(HEAD_WITHIN, reader.read_exact(&mut preface)).await, Ok(Ok(_))) {
        return;
    }
    let stream = tokio::io::join(Cursor::new(preface).chain(reader), writer);
    let _closed = builder.serve_connection(TokioIo::new(stream), service).await;
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use hyper::service::service_fn;
    use tokio::{
        io::{AsyncWriteExt, DuplexStream},
        time::Instant,
    };

    use super::*;

    /// The client's end of a connection on which this was sent.
    async fn begun(version: Version, sent: &[u8]) -> DuplexStream {
        let (mut client, server) = tokio::io::duplex(4096);
        let answer = service_fn(|_request: http::Request<Incoming>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from_static(b"answered"))))
        });
        tokio::spawn(speak(server, version, answer));
        client.write_all(sent).await.unwrap();
        client
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_end_its_head_is_left() {
        for (version, sent) in [
            (Version::One, ""),
            (Version::One, "GET / HT"),
            (Version::One, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept"),
            (Version::Two, ""),
            (Version::Two, "PRI * HTTP/2.0\r\n"),
        ] {
            let mut client = begun(version, sent.as_bytes()).await;
            let start = Instant::now();
            let mut told = Vec::new();
            client.read_to_end(&mut told).await.unwrap();
            assert_eq!(start.elapsed().as_secs(), HEAD_WITHIN.as_secs(), "{version:?} {sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_version_two_that_answers_no_ping_is_left() {
        let mut client = begun(Version::Two, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        let start = Instant::now();
        let mut told = Vec::new();
        client.read_to_end(&mut told).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 2 * HEAD_WITHIN.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn many_half_heads_stop_nobody() {
        let mut others = Vec::new();
        for _ in 0..500 {
            others.push(begun(Version::One, b"GET / HT").await);
        }
        let whole = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let start = Instant::now();
        let mut told = String::new();
        begun(Version::One, whole).await.read_to_string(&mut told).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 200 OK") && told.ends_with("answered"), "{told}");
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(others);
    }
}
