//! Watches over WebSocket: sends each event of a watch response as a frame.
//!
//! Upstream: `HandleWS` of `k8s.io/apiserver/pkg/endpoints/handlers/watch.go`; the handshake follows
//! `golang.org/x/net/websocket`.
//!
//! Browsers and some libraries watch like this. Frames of the client are read and dropped, except pings and the close
//! frame. `exec`, `attach` and `portforward` over `WebSocket` are not served here.

use std::io;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

use crate::{
    Body,
    request::{Params, Verb, decode, parse_path, requested_verb},
    response::full,
};

/// The GUID that is hashed with the key of the client (RFC 6455, section 1.3).
const ACCEPTS: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The value of `Sec-WebSocket-Version`.
const VERSION: &str = "13";
/// The first bytes of unfragmented frames: FIN and the opcode.
const TEXT: u8 = 0x81;
/// A close frame, which ends the connection. Either side may send it. The server sends one when the watch has ended.
const CLOSE: u8 = 0x88;
/// A ping from the client, which a pong answers.
const PING: u8 = 0x89;
/// A pong has the payload of its ping.
const PONG: u8 = 0x8a;
/// The close code 1000: normal closure.
const DONE: [u8; 2] = 1000_u16.to_be_bytes();
/// The longest payload with a one-byte length, as all control frames have. Longer frames of clients are skipped.
const SHORT_LEN_MAX: u64 = 125;

/// The request of a WebSocket client for a watch.
pub(super) struct Handshake {
    /// The headers of the request, among them the key and the subprotocols.
    headers: HeaderMap,
    /// Becomes the raw connection once the response 101 is sent.
    upgrade: OnUpgrade,
}

/// Returns the handshake of a request for a watch over WebSocket, or `None` for all other requests. The request
/// continues as an ordinary watch: authentication, authorization and validation are the same, and only a response 200
/// is turned into frames.
pub(super) fn handshake<B>(request: &mut Request<B>) -> Option<Handshake> {
    let says = |name: HeaderName, word: &str| {
        let all = request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        all.split(',').any(|token| token.trim().eq_ignore_ascii_case(word))
    };
    if !says(header::CONNECTION, "upgrade") || !says(header::UPGRADE, "websocket") {
        return None;
    }
    let path = decode(request.uri().path());
    let params = Params::parse(request.uri().query().unwrap_or_default());
    let is_watch = requested_verb(request.method(), &parse_path(&path)?, &params) == Some(Verb::Watch);
    (is_watch && request.method() == Method::GET)
        .then(|| Handshake { headers: request.headers().clone(), upgrade: hyper::upgrade::on(request) })
}

impl Handshake {
    /// Accepts the handshake and sends the watch in frames. An error response to the watch is returned unchanged.
    pub(super) fn respond(self, watch: Response<Body>) -> Response<Body> {
        if watch.status() != StatusCode::OK {
            return watch;
        }
        let accepted = match self.accept_handshake() {
            Ok(accepted) => accepted,
            Err((code, why)) => return handshake_error(code, why),
        };
        let body = watch.into_body();
        tokio::spawn(async move {
            // A client may close its connection at any time: that is not an error.
            if let Ok(upgraded) = self.upgrade.await {
                let _gone = send_events(TokioIo::new(upgraded), body).await;
            }
        });
        accepted
    }

    /// Returns a header, or the empty string.
    fn text(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the response 101 that starts the frames. An origin is required, because browsers always send one. More
    /// than one subprotocol is rejected; a single one is confirmed without a check.
    ///
    /// # Errors
    /// Returns code and message for an invalid handshake.
    fn accept_handshake(&self) -> Result<Response<Body>, (StatusCode, &'static str)> {
        if self.text(header::SEC_WEBSOCKET_VERSION) != VERSION {
            return Err((StatusCode::BAD_REQUEST, "missing or bad WebSocket Version"));
        }
        let key = self.text(header::SEC_WEBSOCKET_KEY);
        if key.is_empty() {
            return Err((StatusCode::BAD_REQUEST, "mismatch challenge/response"));
        }
        let origin = self.text(header::ORIGIN);
        if ["", "null"].contains(&origin) || origin.starts_with(':') {
            return Err((StatusCode::FORBIDDEN, ""));
        }
        let protocol = self.headers.get(header::SEC_WEBSOCKET_PROTOCOL);
        if protocol.is_some_and(|protocol| protocol.as_bytes().contains(&b',')) {
            return Err((StatusCode::BAD_REQUEST, ""));
        }
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{ACCEPTS}").as_bytes());
        let mut accepted = Response::new(full(Vec::new()));
        *accepted.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = accepted.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(hash) = HeaderValue::from_str(&STANDARD.encode(hash)) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, hash);
        }
        if let Some(protocol) = protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol.clone());
        }
        Ok(accepted)
    }
}

/// Returns the error response to an invalid handshake. The connection is closed, because the client may have sent
/// frames already. For a wrong version the response names the one that is supported.
fn handshake_error(code: StatusCode, why: &str) -> Response<Body> {
    let mut rejected = Response::new(full(why.as_bytes().to_vec()));
    *rejected.status_mut() = code;
    rejected.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if code == StatusCode::BAD_REQUEST && why.ends_with("Version") {
        rejected.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
    }
    rejected
}

/// Sends the events of a watch until it ends, or until the client closes the connection. Each frame has one line, with
/// its line feed. A failed watch ends with a close frame, like a completed one; so does a connection that the client
/// closes.
async fn send_events(stream: impl AsyncRead + AsyncWrite + Unpin, mut watch: Body) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // Capacity 1: the reader waits until a ping is answered before it reads the next one.
    let (pinged, mut pings) = mpsc::channel::<Vec<u8>>(1);
    let sent = async {
        loop {
            tokio::select! {
                Some(ping) = pings.recv() => write(&mut writer, PONG, &ping).await?,
                piece = watch.frame() => {
                    let Some(Ok(piece)) = piece else { return io::Result::Ok(()) };
                    for event in piece.data_ref().into_iter().flat_map(|lines| lines.split_inclusive(|byte| *byte == b'\n')) {
                        write(&mut writer, TEXT, event).await?;
                    }
                }
            }
        }
    };
    tokio::select! {
        sent = sent => sent?,
        closed = listen(&mut reader, pinged) => closed?,
    }
    write(&mut writer, CLOSE, &DONE).await?;
    writer.shutdown().await
}

/// Reads frames of the client until it closes. Pings are passed on; everything else is ignored. Clients mask their
/// frames with four bytes (RFC 6455, section 5.3). The length is never allocated: long payloads are skipped, short ones
/// are at most 125 bytes.
async fn listen(reader: &mut (impl AsyncRead + Unpin), pinged: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    loop {
        let first = reader.read_u8().await?;
        let second = reader.read_u8().await?;
        let len = match u64::from(second & 0x7f) {
            126 => u64::from(reader.read_u16().await?),
            127 => reader.read_u64().await?,
            short => short,
        };
        let mut mask = [0; 4];
        if second & 0x80 != 0 {
            reader.read_exact(&mut mask).await?;
        }
        if len > SHORT_LEN_MAX {
            tokio::io::copy(&mut reader.take(len), &mut tokio::io::sink()).await?;
            continue;
        }
        let mut payload = Vec::new();
        reader.take(len).read_to_end(&mut payload).await?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        match first {
            CLOSE => return Ok(()),
            // Sending fails only after the watch has ended.
            PING => drop(pinged.send(payload).await),
            _ => {}
        }
    }
}

/// Writes an unmasked frame, as servers do. Each frame is flushed, so that an event does not wait for the next one.
async fn write(writer: &mut (impl AsyncWrite + Unpin), first: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![first];
    let len = payload.len();
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len @ ..=125), _) => frame.push(len),
        (_, Ok(len)) => {
            frame.push(126);
            frame.extend(len.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    writer.write_all(&frame).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use hyper::service::service_fn;
    use kctl_webhook::connections::Connections;
    use tokio::io::DuplexStream;
    use tower::ServiceExt;

    use super::{
        super::http_connection::{HttpVersion, LIMITS, serve_http},
        *,
    };
    use crate::ApiServer;

    const WATCH: &str = "/api/v1/namespaces?watch=1&timeoutSeconds=3&fieldSelector=metadata.name%3Ddefault";
    const HEADERS: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const ORIGIN: &str = "Origin: http://localhost\r\n";

    /// Returns the client's end of a connection on which this request was sent.
    async fn send_request(path: &str, headers: &str) -> DuplexStream {
        let (mut client, stream) = tokio::io::duplex(64 * 1024);
        let server = ApiServer::new();
        let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            let service = server.service();
            async move {
                let opening = handshake(&mut request);
                let response = service.oneshot(request).await.unwrap_or_else(|never| match never {});
                Ok::<_, Infallible>(match opening {
                    Some(opening) => opening.respond(response),
                    None => response,
                })
            }
        });
        let connection = Connections::new(LIMITS).enter().await;
        tokio::spawn(async move { serve_http(&connection, stream, HttpVersion::One, service).await });
        client.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes()).await.unwrap();
        client
    }

    /// Returns the head of the response, and the bytes after it.
    async fn read_response(mut client: DuplexStream) -> (String, Vec<u8>) {
        let mut sent = Vec::new();
        client.read_to_end(&mut sent).await.unwrap();
        let end = sent.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8(sent[..end].to_vec()).unwrap(), sent[end + 4..].to_vec())
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_frames_and_pings_are_answered() {
        let mut client = send_request(WATCH, &format!("{HEADERS}{KEY}{ORIGIN}Sec-WebSocket-Protocol: x\r\n")).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.write_all(b"\x81\x82abcdhi\x89\x82\0\0\0\0hi").await.unwrap();
        let (head, frames) = read_response(client).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        for header in ["sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "sec-websocket-protocol: x"] {
            assert!(head.contains(header), "{head}");
        }
        let len = usize::from(u16::from_be_bytes([frames[2], frames[3]]));
        assert_eq!(&frames[..2], &[TEXT, 126]);
        let event: serde_json::Value = serde_json::from_slice(&frames[4..4 + len]).unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&"ADDED".into(), &"default".into()));
        assert_eq!(&frames[4 + len..], b"\x8a\x02hi\x88\x02\x03\xe8");
    }

    #[tokio::test(start_paused = true)]
    async fn close_frame_ends_the_watch() {
        let path = WATCH.replace("default", "nothing");
        let mut client = send_request(&path, &format!("{HEADERS}{KEY}{ORIGIN}")).await;
        let start = tokio::time::Instant::now();
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.write_all(b"\x88\x80\0\0\0\0").await.unwrap();
        assert_eq!(read_response(client).await.1, b"\x88\x02\x03\xe8");
        assert_eq!(start.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_handshakes_get_plain_responses() {
        for (path, headers, code) in [
            (WATCH, format!("{HEADERS}{KEY}"), 403),
            (WATCH, format!("{HEADERS}{KEY}Origin: null\r\n"), 403),
            (WATCH, format!("{HEADERS}{ORIGIN}"), 400),
            (WATCH, format!("{HEADERS}{KEY}{ORIGIN}Sec-WebSocket-Protocol: a, b\r\n"), 400),
            (WATCH, format!("{}{KEY}{ORIGIN}", HEADERS.replace("13", "8")), 400),
            ("/api/v1/nothings?watch=1", format!("{HEADERS}{KEY}{ORIGIN}"), 404),
            ("/api/v1/namespaces/default", format!("{HEADERS}{KEY}{ORIGIN}"), 200),
        ] {
            let mut client = send_request(path, &headers).await;
            let mut start = [0; 12];
            client.read_exact(&mut start).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&start), format!("HTTP/1.1 {code}"), "{path} {headers}");
        }
    }
}
