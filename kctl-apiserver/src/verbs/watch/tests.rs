//! Tests which events a watch sends, and when.

use futures::TryStreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{PostParams, WatchEvent},
};
use tokio::time::sleep;

use super::*;
use crate::ApiServer;

fn configs(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(server.service(), "default"))
}

async fn create(server: &ApiServer, name: &str) {
    let config = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    configs(server).create(&PostParams::default(), &config).await.unwrap();
}

/// Returns the events of a watch with this query, with the seconds at which they arrive.
async fn events(server: &ApiServer, query: &str) -> Vec<String> {
    let path = format!("/api/v1/namespaces/default/configmaps?watch=true&{query}");
    let request = Request::get(path).body(Vec::new()).unwrap();
    let begun = Instant::now();
    let mut events = Box::pin(configs(server).into_client().request_events::<ConfigMap>(request).await.unwrap());
    let mut lines = Vec::new();
    while let Ok(Some(event)) = events.try_next().await {
        let event = match event {
            WatchEvent::Added(config) => format!("added {}", config.metadata.name.unwrap()),
            WatchEvent::Bookmark(bookmark) => format!("bookmark {}", bookmark.metadata.resource_version),
            WatchEvent::Error(status) => format!("{} {}", status.code, status.message),
            other => format!("{other:?}"),
        };
        lines.push(format!("{} s: {event}", begun.elapsed().as_secs()));
    }
    lines.push(format!("{} s: end", begun.elapsed().as_secs()));
    lines
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let server = ApiServer::new();
    let from = server.revision();
    let query = |seconds: u64| format!("resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds={seconds}");
    assert_eq!(events(&server, &query(70)).await, ["70 s: end"]);
    let (long, short, late) = (query(130), query(12), query(61));
    let events = tokio::join!(events(&server, &long), events(&server, &short), events(&server, &late), async {
        sleep(Duration::from_secs(5)).await;
        create(&server, "a").await;
    });
    let now = server.revision();
    let bookmark = |second: u64| format!("{second} s: bookmark {now}");
    assert_eq!(events.0, ["5 s: added a".into(), bookmark(60), bookmark(120), bookmark(128), "130 s: end".into()]);
    assert_eq!(events.1, ["5 s: added a".into(), bookmark(10), "12 s: end".into()]);
    assert_eq!(events.2, ["5 s: added a".into(), bookmark(59), "61 s: end".into()]);
}

#[tokio::test(start_paused = true)]
async fn initial_events_of_a_future_version_fail() {
    let server = ApiServer::new();
    let future_version = "resourceVersion=999999&timeoutSeconds=3&resourceVersionMatch=NotOlderThan&sendInitialEvents";
    let why = format!("0 s: 504 Timeout: Too large resource version: 999999, current: {}", server.revision());
    assert_eq!(events(&server, &format!("{future_version}=true")).await, [why, "0 s: end".into()]);
    assert_eq!(events(&server, &format!("{future_version}=false")).await, ["3 s: end"]);
}

#[tokio::test(start_paused = true)]
async fn zero_negative_and_huge_timeouts_match_go() {
    let server = ApiServer::new();
    let in_vain = "0 s: 500 context deadline exceeded";
    let odd = [
        ("0", &["1800 s: end"][..]),
        ("-1", &[in_vain, "0 s: end"]),
        ("-1&resourceVersion=0", &["0 s: end"]),
        ("-1&resourceVersion=1", &["0 s: end"]),
        ("9223372036854775807", &[in_vain, "0 s: end"]),
    ];
    for (seconds, expected) in odd {
        assert_eq!(events(&server, &format!("timeoutSeconds={seconds}")).await, expected, "{seconds}");
    }
}
