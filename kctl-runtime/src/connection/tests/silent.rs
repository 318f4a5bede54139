//! Tests of connections that remain open without a response, as behind a proxy that went away: a request over one is
//! lost.

use http::Method;
use tokio::time::sleep;

use super::*;

fn post() -> Request<Body> {
    Request::builder().method(Method::POST).uri("/api/v1/pods").body(Body::from(b"{}".to_vec())).unwrap()
}

#[tokio::test]
async fn write_after_silence_uses_a_new_connection() {
    let server = TestServer::start(0).await;
    let by = client(&server, Limits { reuse_within: Duration::from_millis(1), ..Limits::default() });
    ask(&by, get("/api")).await;
    server.end(End::Silent);
    // Longer than `reuse_within`, so the idle connection is not reused.
    sleep(Duration::from_millis(2)).await;
    ask(&by, post()).await;
    assert_eq!(server.n_connections(), 2);
}

#[tokio::test]
async fn unanswered_get_is_repeated_over_a_new_connection() {
    let server = TestServer::start(0).await;
    let by = client(&server, Limits { first_byte_within: Duration::from_millis(500), ..Limits::default() });
    // Leaves several idle connections, which all become silent.
    join_all((0..4).map(|_| ask(&by, get("/api")))).await;
    let known = server.n_connections();
    server.end(End::Silent);
    ask(&by, get("/api")).await;
    ask(&by, get("/api")).await;
    assert_eq!(server.n_connections(), known + 1, "none of those that were idle is tried after the first");
}

#[tokio::test]
async fn lost_get_is_repeated_but_no_write() {
    for (request, is_repeated) in [(get("/api"), true), (post(), false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = kube::Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        let by = with_limits(config, Limits::default()).unwrap().build();
        tokio::spawn(async move {
            // Responds to one request of each connection, and closes the connection once it has read the next.
            while let Ok((mut stream, _peer)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = vec![0; 4096];
                    assert!(stream.read(&mut head).await.unwrap() > 0);
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}\n").await.unwrap();
                    let _next = stream.read(&mut head).await;
                });
            }
        });
        ask(&by, get("/api")).await;
        let response = timeout(SOON, by.send(request)).await.expect("an answer or an error");
        assert_eq!(response.is_ok(), is_repeated, "{:?}", response.err());
    }
}

#[tokio::test]
async fn write_without_an_answer_is_sent_once() {
    let server = TestServer::start(0).await;
    let by = client(&server, Limits { first_byte_within: Duration::from_millis(1), ..Limits::default() });
    ask(&by, get("/api")).await;
    server.end(End::Silent);
    assert!(timeout(Duration::from_millis(100), by.send(post())).await.is_err(), "whether it was done is not known");
    assert_eq!(server.n_connections(), 1);
    ask(&by, get("/api")).await;
    assert_eq!(server.n_connections(), 2, "the connection of a request that was given up is not used again");
}
