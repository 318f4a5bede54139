//! Clients that connect or begin a request and then stall: other requests are still answered.

use std::time::Duration;

use axum::body::Body;
use futures::future::{join_all, pending};
use http_body_util::StreamBody;
use kctl::{Json, json};
use kctl_webhook::{
    Metrics,
    server::{Routes, Server, ServerOptions},
};
use kube::{Client, Config};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    kinds,
    protocol::{RULES, review, send_review, site},
};

/// Time limit for responses that usually take much less.
const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn webhooks_are_answered_despite_silent_connections() {
    // Nothing, the first bytes of a TLS handshake, and plain HTTP.
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n"] {
        let mut options = ServerOptions::default();
        options.connections_max = 16;
        let server = Server::listen(Routes::default(), options).await.unwrap();
        let address = server.address();
        tokio::spawn(server.serve(pending()));
        let mut silent = Vec::new();
        for _ in 0..200 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // The server may have closed the connection already.
            let _sent = stream.write_all(begun).await;
            silent.push(stream);
        }
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.accept_invalid_certs = true;
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        let client = Client::try_from(config).unwrap();
        let response = timeout(TIMEOUT, client.request_text(request)).await.expect("an answer");
        assert_eq!(response.unwrap(), "ok", "{begun:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_despite_requests_without_end() {
    let router = kinds::app().webhook_routes(&Metrics::default()).unwrap().router;
    let half = || {
        let router = router.clone();
        let body = Body::new(StreamBody::new(futures::stream::pending::<Result<_, std::convert::Infallible>>()));
        tokio::spawn(async move { send_review(&router, RULES, "application/json", body).await })
    };
    // Far more requests than are read or run concurrently.
    let others: Vec<_> = (0..300).map(|_| half()).collect();
    sleep(Duration::from_millis(1)).await;
    let begun = tokio::time::Instant::now();
    let body = review("CREATE", &site(json!({ "hosts": ["a"] })), &Json::Null);
    let response = send_review(&router, RULES, "application/json", body).await;
    assert_eq!((&response["allowed"], begun.elapsed()), (&json!(true), Duration::ZERO));
    let responses = join_all(others).await;
    let why = |response: &Json| response["status"]["message"].as_str().unwrap_or_default().to_owned();
    let late = "no response within 30s: the rest of the request did not come";
    let gave_way = "the rest of the request did not come, and other requests waited for its place: send it again";
    let n = |text: &str| responses.iter().filter(|response| why(response.as_ref().unwrap()) == text).count();
    assert_eq!((n(late), n(gave_way)), (63, 237), "the newest 64 were read, and one of them gave way");
}
