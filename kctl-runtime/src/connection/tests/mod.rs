//! Tests over real sockets, because they count connections.

mod h1_pool;
mod plugins;
mod proxies;
mod server;
mod silent;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future::join_all};
use http::{Request, Version};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};

use super::{LongResponse, limits::Limits, with_limits};
use crate::transport;
use server::{End, SeenRequest, TestServer};

const WATCH: &str = "/api/v1/pods?watch=1";
/// Longest wait for something that has to happen; it usually happens much earlier.
const SOON: Duration = Duration::from_secs(20);

fn client(server: &TestServer, limits: Limits) -> Client {
    with_limits(server.config(), limits).unwrap().build()
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

async fn ask(by: &Client, request: Request<Body>) {
    let response = timeout(SOON, by.send(request)).await.expect("an answer").unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "{}\n");
}

/// Opens a watch and reads its first line.
async fn watch(by: &Client) -> Body {
    let mut body = timeout(SOON, by.send(get(WATCH))).await.expect("an answer").unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{}\n");
    body
}

async fn watches(by: &Client, n: usize) -> Vec<Body> {
    join_all((0..n).map(|_| watch(by))).await
}

/// Returns the number of requests over each connection.
fn by_connection(server: &TestServer) -> Vec<usize> {
    let mut counts = BTreeMap::new();
    for seen in server.take() {
        *counts.entry(seen.connection).or_insert(0) += 1;
    }
    counts.into_values().collect()
}

#[tokio::test]
async fn watches_share_connections_and_others_use_http1() {
    let server = TestServer::start(100).await;
    let by = client(&server, Limits::default());
    let mut open = watches(&by, 100).await;
    assert_eq!(by_connection(&server), [80, 20]);
    for _ in 0..5 {
        ask(&by, get("/api/v1/pods/a")).await;
    }
    let requests = server.take();
    assert!(requests.iter().all(|seen| seen.connection == 2 && seen.version == Version::HTTP_11), "{requests:?}");
    // Free streams of an open connection are used before another connection is opened.
    open.truncate(70);
    open.extend(watches(&by, 10).await);
    assert_eq!((by_connection(&server), server.n_connections()), (vec![10], 3));
}

#[tokio::test]
async fn lists_and_upgrades_go_by_http_1() {
    let server = TestServer::start(100).await;
    let by = client(&server, Limits::default());
    let mut list = get("/api/v1/pods");
    list.extensions_mut().insert(LongResponse);
    let mut upgrade = get("/api/v1/pods/a/exec");
    upgrade.headers_mut().insert("upgrade", "websocket".parse().unwrap());
    for request in [list, upgrade, get("/api/v1/pods"), get("/api/v1/pods/a/log?follow=true")] {
        let response = timeout(SOON, by.send(request)).await.unwrap().unwrap();
        drop(response);
    }
    let seen = server.take();
    assert!(seen.iter().all(|seen| seen.agent.starts_with("kctl/")), "{seen:?}");
    let versions: Vec<Version> = seen.into_iter().map(|seen| seen.version).collect();
    assert_eq!(versions, [Version::HTTP_11, Version::HTTP_11, Version::HTTP_11, Version::HTTP_2]);
}

/// A program with a hundred kinds must not open a hundred connections at its start.
#[tokio::test]
async fn concurrent_lists_overflow_to_http2_streams() {
    let server = TestServer::start(100).await;
    let by = client(&server, Limits::default());
    let list = || {
        // The response remains open, like the response of a long list.
        let mut list = get("/api/v1/pods?follow=list");
        list.extensions_mut().insert(LongResponse);
        list
    };
    let open = join_all((0..50).map(|_| by.send(list()))).await;
    assert!(open.iter().all(Result::is_ok));
    let counts = |seen: Vec<SeenRequest>| {
        let n_plain = seen.iter().filter(|seen| seen.version == Version::HTTP_11).count();
        (n_plain, seen.len() - n_plain)
    };
    assert_eq!((counts(server.take()), server.n_connections()), ((8, 42), 9));
    drop(open);
    timeout(SOON, by.send(list())).await.unwrap().unwrap();
    assert_eq!(counts(server.take()), (1, 0));
}

#[tokio::test]
async fn http1_server_gets_a_connection_per_watch() {
    let server = TestServer::start(0).await;
    let by = client(&server, Limits::default());
    let _open = watches(&by, 5).await;
    ask(&by, get("/api/v1/pods/a")).await;
    let seen = server.take();
    assert!(seen.iter().all(|seen| seen.version == Version::HTTP_11), "{seen:?}");
    let connections: BTreeSet<usize> = seen.iter().map(|seen| seen.connection).collect();
    assert_eq!(connections.len(), 6, "{seen:?}");
}

/// A fifth watch would wait forever for a free stream. Its timeout lowers the bound to four.
#[tokio::test]
async fn server_that_takes_fewer_streams_gets_more_connections() {
    let server = TestServer::start(4).await;
    let limits = Limits { response_within: Duration::ZERO, ..Limits::default() };
    let by = client(&server, limits);
    let _open = watches(&by, 4).await;
    let waits = timeout(Duration::from_millis(100), by.send(get(WATCH))).await;
    assert!(waits.is_err(), "a fifth stream of four was answered");
    let _more = watches(&by, 9).await;
    assert_eq!(by_connection(&server), [4, 4, 4, 1]);
}

/// Returns limits that notice a silent connection within about a second, and learn from each unanswered watch.
fn impatient() -> Limits {
    let (ping_every, ping_within) = (Duration::from_millis(50), Duration::from_secs(1));
    Limits { response_within: Duration::ZERO, ping_every, ping_within, ..Limits::default() }
}

/// Opens ten watches, and checks that they share a connection.
async fn check_sharing(by: &Client, server: &TestServer) {
    server.take();
    let _open = watches(by, 10).await;
    assert_eq!(by_connection(server), [10]);
}

#[tokio::test]
async fn watch_failing_with_its_connection_lowers_no_bound() {
    let server = TestServer::start(100).await;
    let by = client(&server, impatient());
    let open = watches(&by, 3).await;
    server.end(End::Silent);
    let failed = timeout(SOON, by.send(get(WATCH))).await.expect("the end of the connection");
    assert!(failed.is_err(), "a silent server responded");
    drop(open);
    check_sharing(&by, &server).await;
}

#[tokio::test]
async fn bound_of_a_dead_connection_is_taken_back() {
    let server = TestServer::start(100).await;
    let by = client(&server, impatient());
    let mut open = watches(&by, 3).await;
    server.end(End::Silent);
    assert!(timeout(Duration::from_millis(1), by.send(get(WATCH))).await.is_err(), "a silent server responded");
    for body in &mut open {
        let end = timeout(SOON, body.frame()).await.expect("the end of the watch");
        assert!(end.is_none_or(|frame| frame.is_err()));
    }
    drop(open);
    check_sharing(&by, &server).await;
}

#[tokio::test]
async fn watches_of_a_lost_connection_reconnect_over_one() {
    let server = TestServer::start(100).await;
    let by = client(&server, Limits::default());
    let mut open = watches(&by, 40).await;
    assert_eq!(server.n_connections(), 1);
    server.end(End::Closed);
    for body in &mut open {
        let end = timeout(SOON, body.frame()).await.expect("the end of the watch");
        assert!(end.is_none_or(|frame| frame.is_err()));
    }
    drop(open);
    server.take();
    let _again = watches(&by, 40).await;
    assert_eq!((by_connection(&server), server.n_connections()), (vec![40], 2));
}

#[tokio::test]
async fn connection_that_went_silent_is_noticed_and_replaced() {
    let server = TestServer::start(100).await;
    let (ping_every, ping_within) = (Duration::from_millis(50), Duration::from_secs(1));
    let by = client(&server, Limits { ping_every, ping_within, ..Limits::default() });
    let mut open = watch(&by).await.into_data_stream();
    server.end(End::Silent);
    let end = timeout(SOON, open.next()).await.expect("the end of the watch");
    assert!(end.is_none_or(|chunk| chunk.is_err()));
    let _again = watch(&by).await;
    assert_eq!(server.n_connections(), 2);
}

#[tokio::test]
async fn silent_server_is_named_in_the_error() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = TestServer::start(100).await.config();
    config.cluster_url = format!("https://{}", silent.local_addr().unwrap()).parse().unwrap();
    config.connect_timeout = Some(Duration::from_millis(50));
    let by = with_limits(config, Limits::default()).unwrap().build();
    let error = transport::get(&by, &"get pods".into(), "/api/v1/pods").await.unwrap_err().to_string();
    assert!(error.starts_with("get pods: ") && error.ends_with(": the connection timed out"), "{error}");
}

#[tokio::test]
async fn names_that_no_server_has_are_rejected() {
    let mut config = TestServer::start(100).await.config();
    config.tls_server_name = Some("no name".into());
    let error = with_limits(config, Limits::default()).err().unwrap().to_string();
    assert!(error.contains("tls-server-name `no name`"), "{error}");
}
