//! Serves HTTP/1.1 and HTTP/2 on one connection, with the time limits of kube-apiserver.
//!
//! A connection ends for one of three reasons: the client closes it, it exceeds a limit, or another client needs its
//! slot. HTTP/1.1 has no message for the last two, so the socket just closes; HTTP/2 gets a GOAWAY first.

use std::{io::Cursor, pin::pin, time::Duration};

use bytes::Bytes;
use http::header;
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use kctl_webhook::connections::{Connection, Limits};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    time::timeout,
};

/// The time from the accept to the head of the first request, or to the end of the HTTP/2 preface: `ReadHeaderTimeout`
/// of kube-apiserver (`secure_serving.go`). Later, a client of HTTP/2 has to answer a ping within it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(32);
/// A connection without requests is closed after this time: `IdleTimeout` of kube-apiserver (`secure_serving.go`).
/// Pings do not extend it.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// The time for a body. The request itself fails earlier, after 60 s.
const BODY_TIMEOUT: Duration = Duration::from_secs(90);
/// The time that a client of HTTP/2 has to close its connection after GOAWAY.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// The limits of all connections. 768 of them leave some of the 1,024 files that a process may usually open.
/// kube-apiserver has no such limit.
pub(super) const LIMITS: Limits =
    Limits { connections: 768, head_within: HEAD_TIMEOUT, body_within: BODY_TIMEOUT, idle_max: IDLE_MAX };
/// The length of the preface with which each HTTP/2 connection begins (RFC 9113, section 3.4).
const PREFACE_LEN: usize = 24;

/// The version of HTTP that ALPN selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpVersion {
    /// HTTP/1.1, also for clients without ALPN.
    One,
    /// HTTP/2, `h2` in ALPN.
    Two,
}

/// Serves a connection until the client closes it or exceeds a time limit. The preface of HTTP/2 is read here before
/// hyper sees the connection, so that the time limit applies to it. `WebSockets` are upgrades of HTTP/1.1, so only that
/// version has them.
pub(super) async fn serve_http<S, B>(
    client: &Connection,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    version: HttpVersion,
    service: S,
) where
    S: Service<http::Request<Incoming>, Response = http::Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if version == HttpVersion::One {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
        let served = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::select! {
            // A client may close its connection at any time, so this is not an error.
            _closed = served => {}
            () = client.wait_for_deadline() => {}
        }
        return;
    }
    let mut builder = auto::Builder::new(TokioExecutor::new()).http2_only();
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD_TIMEOUT).keep_alive_timeout(HEAD_TIMEOUT);
    let (mut reader, writer) = tokio::io::split(stream);
    let mut preface = [0; PREFACE_LEN];
    let began = tokio::select! {
        read = reader.read_exact(&mut preface) => read.is_ok(),
        () = client.wait_for_deadline() => false,
    };
    if !began {
        return;
    }
    client.record_preface();
    let stream = tokio::io::join(Cursor::new(preface).chain(reader), writer);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _closed = served.as_mut() => return,
        // GOAWAY names the last request that is handled. The client may retry later requests.
        () = client.wait_for_deadline() => served.as_mut().graceful_shutdown(),
    }
    let _closed = timeout(GOAWAY_TIMEOUT, served).await;
}

/// Removes the body of the response to a HEAD request, and keeps its length in the header. hyper does so for HTTP/1.1
/// only. Over HTTP/2 a body is an error for the client.
pub(super) fn remove_body(response: &mut http::Response<crate::Body>) {
    if let Some(len) = response.body().size_hint().exact().filter(|len| *len > 0) {
        response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
    }
    *response.body_mut() = http_body_util::Empty::<Bytes>::new().boxed_unsync();
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full};
    use hyper::service::service_fn;
    use kctl_webhook::connections::Connections;
    use tokio::{
        io::{AsyncWriteExt, DuplexStream},
        time::Instant,
    };

    use super::*;

    /// Returns the client's end of a connection on which `sent` was written.
    async fn connect_and_send(version: HttpVersion, sent: &[u8]) -> DuplexStream {
        let (mut client, server) = tokio::io::duplex(4096);
        let service = service_fn(|_request: http::Request<Incoming>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from_static(b"answered"))))
        });
        let connection = Connections::new(LIMITS).enter().await;
        tokio::spawn(async move { serve_http(&connection, server, version, service).await });
        client.write_all(sent).await.unwrap();
        client
    }

    #[tokio::test(start_paused = true)]
    async fn connection_with_unfinished_head_is_closed() {
        for (version, sent) in [
            (HttpVersion::One, ""),
            (HttpVersion::One, "GET / HT"),
            (HttpVersion::One, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept"),
            (HttpVersion::Two, ""),
            (HttpVersion::Two, "PRI * HTTP/2.0\r\n"),
        ] {
            let mut client = connect_and_send(version, sent.as_bytes()).await;
            let start = Instant::now();
            let mut received = Vec::new();
            client.read_to_end(&mut received).await.unwrap();
            assert_eq!(start.elapsed().as_secs(), HEAD_TIMEOUT.as_secs(), "{version:?} {sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn h2_connection_without_ping_reply_is_closed() {
        let mut client =
            connect_and_send(HttpVersion::Two, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        let start = Instant::now();
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 2 * HEAD_TIMEOUT.as_secs());
    }

    /// Answers pings until the server closes the connection. Returns `true` if it sent GOAWAY before.
    async fn answer_pings(client: &mut DuplexStream) -> bool {
        let (ping, goaway, ack) = (6, 7, 1);
        let mut goes_away = false;
        let mut head = [0; 9];
        while client.read_exact(&mut head).await.is_ok() {
            let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
            client.read_exact(&mut payload).await.unwrap();
            goes_away |= head[3] == goaway;
            if head[3] == ping && head[4] != ack {
                head[4] = ack;
                client.write_all(&[&head[..], &payload].concat()).await.unwrap();
            }
        }
        goes_away
    }

    #[tokio::test(start_paused = true)]
    async fn idle_h2_connection_gets_goaway() {
        let mut client =
            connect_and_send(HttpVersion::Two, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        let start = Instant::now();
        let ended = timeout(Duration::from_secs(3_600), answer_pings(&mut client)).await;
        assert_eq!((ended, start.elapsed()), (Ok(true), IDLE_MAX));
    }

    #[tokio::test(start_paused = true)]
    async fn head_over_h2_has_length_without_body() {
        let (client, server) = tokio::io::duplex(4096);
        let service = service_fn(|_request: http::Request<Incoming>| async {
            let mut response = http::Response::new(Full::new(Bytes::from_static(b"answered")).boxed_unsync());
            remove_body(&mut response);
            Ok::<_, std::convert::Infallible>(response)
        });
        let connection = Connections::new(LIMITS).enter().await;
        tokio::spawn(async move { serve_http(&connection, server, HttpVersion::Two, service).await });
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client));
        let (mut sender, driver) = handshake.await.unwrap();
        tokio::spawn(driver);
        let request = http::Request::head("https://localhost/").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_LENGTH], "8");
        assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn incomplete_requests_do_not_delay_other_clients() {
        let mut others = Vec::new();
        for _ in 0..500 {
            others.push(connect_and_send(HttpVersion::One, b"GET / HT").await);
        }
        let whole = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let start = Instant::now();
        let mut received = String::new();
        connect_and_send(HttpVersion::One, whole).await.read_to_string(&mut received).await.unwrap();
        assert!(received.starts_with("HTTP/1.1 200 OK") && received.ends_with("answered"), "{received}");
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(others);
    }
}
