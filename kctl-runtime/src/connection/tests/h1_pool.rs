//! Tests of HTTP/1.1 connections that the waiting task polls, with bytes on a socket, because the fate of the connection matters.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use kube::Config;

use super::*;

/// The bytes that a server sends, in pieces with pauses. If `closes` is set, it closes the connection afterwards.
struct SentBytes {
    pieces: &'static [&'static str],
    closes: bool,
}

/// Starts a server without TLS. Returns a client and the number of connections so far.
async fn server(sent: SentBytes) -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    let n_connections = Arc::new(AtomicUsize::new(0));
    let counted = n_connections.clone();
    let sent = Arc::new(sent);
    tokio::spawn(async move {
        while let Ok((mut stream, _peer)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let sent = sent.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4096];
                while stream.read(&mut head).await.is_ok_and(|n| n > 0) {
                    for piece in sent.pieces {
                        stream.write_all(piece.as_bytes()).await.unwrap();
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    if sent.closes {
                        return;
                    }
                }
            });
        }
    });
    (with_limits(config, Limits::default()).unwrap().build(), n_connections)
}

async fn get_response(by: &Client) -> Response<Body> {
    timeout(SOON, by.send(get("/api"))).await.expect("an answer").unwrap()
}

async fn text(response: Response<Body>) -> Result<String, String> {
    let body = timeout(SOON, response.into_body().collect()).await.expect("the end of the response");
    body.map(|body| String::from_utf8(body.to_bytes().into()).unwrap()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn answers_in_pieces_come_whole_over_one_connection() {
    let cases: [&[&str]; 3] = [
        &["HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n", "ab", "cd", "ef"],
        &["HTTP/1.1 200 OK\r\ntransfer-", "encoding: chunked\r\n\r\n2\r\nab\r\n", "4\r\ncd", "ef\r\n", "0\r\n\r\n"],
        &["HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabcdef"],
    ];
    for pieces in cases {
        let (by, n_connections) = server(SentBytes { pieces, closes: false }).await;
        for _ in 0..3 {
            assert_eq!(text(get_response(&by).await).await.unwrap(), "abcdef", "{pieces:?}");
        }
        assert_eq!(n_connections.load(Ordering::Relaxed), 1, "{pieces:?}");
    }
}

#[tokio::test]
async fn truncated_response_discards_its_connection() {
    let pieces = &["HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n", "abc"];
    let (by, n_connections) = server(SentBytes { pieces, closes: true }).await;
    for _ in 0..2 {
        assert!(text(get_response(&by).await).await.is_err());
    }
    assert_eq!(n_connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn connection_that_the_server_has_closed_is_replaced() {
    let pieces = &["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"];
    let (by, n_connections) = server(SentBytes { pieces, closes: true }).await;
    for n in 1..=3 {
        assert_eq!(text(get_response(&by).await).await.unwrap(), "ab");
        assert_eq!(n_connections.load(Ordering::Relaxed), n);
        // Waits until the client has seen that the connection is closed.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn unread_response_closes_its_connection() {
    let pieces = &["HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n", "ab", "cd", "ef"];
    let (by, n_connections) = server(SentBytes { pieces, closes: false }).await;
    drop(get_response(&by).await);
    assert_eq!(text(get_response(&by).await).await.unwrap(), "abcdef");
    assert_eq!(n_connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn concurrent_requests_pool_their_connections() {
    let pieces = &["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"];
    let (by, n_connections) = server(SentBytes { pieces, closes: false }).await;
    for n in [40, 30, 32, 40] {
        let texts = join_all((0..n).map(|_| async { text(get_response(&by).await).await })).await;
        assert!(texts.iter().all(|text| text.as_deref() == Ok("ab")), "{texts:?}");
    }
    assert_eq!(n_connections.load(Ordering::Relaxed), 48, "32 are kept");
}

#[tokio::test]
async fn requests_have_one_host_header_and_a_path() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = Config::new(format!("http://{address}/prefix").parse().unwrap());
    let by = with_limits(config, Limits::default()).unwrap().build();
    let request = tokio::spawn(async move { by.send(get("/api/v1/pods?limit=1")).await.map(drop) });
    let (mut stream, _peer) = timeout(SOON, listener.accept()).await.unwrap().unwrap();
    let mut head = vec![0; 4096];
    let n = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..n]).to_lowercase();
    assert!(head.starts_with("get /prefix/api/v1/pods?limit=1 http/1.1\r\n"), "{head}");
    assert_eq!(head.matches("\r\nhost: ").count(), 1, "{head}");
    assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
    drop(stream);
    assert!(timeout(SOON, request).await.unwrap().unwrap().is_err());
}

#[tokio::test]
async fn upgraded_connection_does_not_return_to_the_pool() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    let by = with_limits(config, Limits::default()).unwrap().build();
    tokio::spawn(async move {
        let (mut stream, _peer) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        assert!(stream.read(&mut bytes).await.unwrap() > 0);
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while let Ok(n @ 1..) = stream.read(&mut bytes).await {
            stream.write_all(&bytes[..n]).await.unwrap();
        }
    });
    let mut request = get("/api/v1/pods/a/exec");
    request.headers_mut().insert("connection", "upgrade".parse().unwrap());
    request.headers_mut().insert("upgrade", "echo".parse().unwrap());
    let response = timeout(SOON, by.send(request)).await.unwrap().unwrap();
    assert_eq!(response.status(), 101);
    let upgraded = timeout(SOON, hyper::upgrade::on(response)).await.unwrap().unwrap();
    let mut stream = hyper_util::rt::TokioIo::new(upgraded);
    for sent in ["one", "two"] {
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut received = [0; 3];
        timeout(SOON, stream.read_exact(&mut received)).await.unwrap().unwrap();
        assert_eq!(&received, sent.as_bytes());
    }
}
