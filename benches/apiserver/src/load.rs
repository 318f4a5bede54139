//! The loads that both servers run, over TLS.
//!
//! Each load runs for a fixed time with 1 and with 16 clients, and reports requests per second and server CPU per
//! request. The rate with one client shows the latency of a request, and the rate with 16 clients shows the throughput.
//! CPU per request does not depend on the client, so it is the figure to compare between machines.
//!
//! Then [`N_WATCHERS`] watchers follow writes at a fixed rate, and [`N_LISTED`] objects are listed. Both servers run
//! the loads in the same order, so that both hold the same objects when a load starts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::{sync::Barrier, task::JoinSet, time::Instant};

use crate::{
    Failure,
    lag::{Lags, stamp, stamps},
    objects::{config_map, name, pod},
    process::Server,
};

/// Path of the namespace with the objects.
const NAMESPACE: &str = "/api/v1/namespaces/default";
/// Number of Pods to read, and to patch the status of.
const N_PODS: usize = 200;
/// Number of objects in a list.
const N_LISTED: usize = 10_000;
/// Number of lists; their median is reported.
const N_LISTS: usize = 7;
/// Number of watchers of one kind.
const N_WATCHERS: usize = 100;
/// Writes of that kind per second.
const WRITES_PER_SECOND: u32 = 200;
/// Longest wait for the last event after the last write. A slower server has fallen behind.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// A result of one server.
pub(crate) struct Figure {
    /// The load.
    pub(crate) what: String,
    pub(crate) value: f64,
    /// Unit of the value: `/s`, `ms`, `µs each`, `%`.
    pub(crate) unit: &'static str,
}

pub(crate) fn figure(what: impl Into<String>, value: f64, unit: &'static str) -> Figure {
    Figure { what: what.into(), value, unit }
}

/// The requests of a load.
#[derive(Clone, Copy)]
enum Request {
    /// Creates a new `ConfigMap` of 1 KB.
    Create,
    /// Changes the status of one of [`N_PODS`] Pods by a merge patch.
    Status,
    /// Reads one of [`N_PODS`] Pods.
    Get,
    /// Applies a `ConfigMap` with a changed value.
    Apply,
}

impl Request {
    /// Returns the name for the table of results.
    fn what(self) -> &'static str {
        match self {
            Self::Create => "creates of 1 KB",
            Self::Status => "status patches",
            Self::Get => "gets",
            Self::Apply => "server-side applies",
        }
    }

    /// Returns method, path and body of the nth request. Numbers never repeat, so each write changes something.
    fn parts(self, n: usize) -> (Method, String, Bytes) {
        let known = name("pod", n % N_PODS);
        match self {
            Self::Create => {
                let object = config_map(&name("created", n), "0");
                (Method::POST, format!("{NAMESPACE}/configmaps"), object.to_string().into())
            }
            Self::Status => {
                let patch = json!({ "status": { "message": n.to_string() } });
                (Method::PATCH, format!("{NAMESPACE}/pods/{known}/status"), patch.to_string().into())
            }
            Self::Get => (Method::GET, format!("{NAMESPACE}/pods/{known}"), Bytes::new()),
            Self::Apply => {
                let object = config_map(&name("applied", n % N_PODS), &n.to_string());
                let path =
                    format!("{NAMESPACE}/configmaps/{}?fieldManager=bench&force=true", name("applied", n % N_PODS));
                (Method::PATCH, path, object.to_string().into())
            }
        }
    }
}

/// Runs all loads, each for the time `each`.
///
/// # Errors
/// The server rejects a request or closes a connection. A result with failed requests would be meaningless.
pub(crate) async fn all(server: &Server, each: Duration) -> Result<Vec<Figure>, Failure> {
    let mut figures = vec![figure("ready", server.ready_after.as_secs_f64() * 1_000.0, "ms")];
    let mut client = server.target.connect().await?;
    for n in 0..N_PODS {
        client.post(&format!("{NAMESPACE}/pods"), &pod(&name("pod", n))).await?;
    }
    let next = Arc::new(AtomicUsize::new(0));
    for n_clients in [1, 16] {
        for request in [Request::Create, Request::Status, Request::Get, Request::Apply] {
            let (rate, cpu) = run(server, request, n_clients, each, &next).await?;
            let clients = if n_clients == 1 { "1 client" } else { "16 clients" };
            figures.push(figure(format!("{}, {clients}", request.what()), rate, "/s"));
            figures.push(figure(format!("{}, {clients}: CPU of the server", request.what()), cpu, "µs each"));
        }
    }
    figures.extend(watch(server, each).await?);
    figures.extend(lists(server).await?);
    Ok(figures)
}

/// Runs a load. Returns requests per second, and the server's CPU time per request in microseconds.
///
/// All clients connect first and then start together. Each client sends its next request once it has received the
/// response.
async fn run(
    server: &Server,
    request: Request,
    n_clients: usize,
    each: Duration,
    next: &Arc<AtomicUsize>,
) -> Result<(f64, f64), Failure> {
    let mut tasks = JoinSet::new();
    let start = Arc::new(Barrier::new(n_clients + 1));
    for _ in 0..n_clients {
        let mut client = server.target.connect().await?;
        let (start, next) = (start.clone(), next.clone());
        tasks.spawn(async move {
            start.wait().await;
            let end = Instant::now() + each;
            let mut done = 0_u32;
            while Instant::now() < end {
                let (method, path, body) = request.parts(next.fetch_add(1, Ordering::Relaxed));
                client.send(method, &path, body).await?;
                done += 1;
            }
            Ok::<_, Failure>(done)
        });
    }
    let before = server.cpu()?;
    let began = Instant::now();
    start.wait().await;
    let mut done = 0.0;
    while let Some(task) = tasks.join_next().await {
        done += f64::from(task??);
    }
    let elapsed = began.elapsed().as_secs_f64();
    Ok((done / elapsed, (server.cpu()? - before) / done * 1e6))
}

/// Measures the lag between a write and its event at [`N_WATCHERS`] watchers, with a constant rate of writes.
///
/// Each watcher has its own connection and task. It is an error if a watch ends early, or if an event does not arrive
/// within [`LAST_EVENT_TIMEOUT`], because a server that drops watchers would look fast.
///
/// The watched namespace differs from the namespace of the other loads, so that their objects cause no events.
async fn watch(server: &Server, each: Duration) -> Result<Vec<Figure>, Failure> {
    let namespace = "/api/v1/namespaces/kube-public/configmaps";
    let n_writes = usize::try_from(u64::from(WRITES_PER_SECOND) * each.as_secs())?;
    let lags = Arc::new(Lags::default());
    let mut tasks = JoinSet::new();
    for _ in 0..N_WATCHERS {
        let mut client = server.target.connect().await?;
        let path = format!("{namespace}?watch=1&allowWatchBookmarks=true");
        let mut body = client.open(Method::GET, &path, Bytes::new()).await?.into_body();
        let lags = lags.clone();
        tasks.spawn(async move {
            let _open = client;
            let (mut seen, mut rest) = (0, Vec::new());
            while seen < n_writes {
                let Some(frame) = body.frame().await else { return Err("a watch has ended".into()) };
                seen += stamps(&mut rest, frame?.data_ref().unwrap_or(&Bytes::new()), &lags);
            }
            Ok::<_, Failure>(())
        });
    }
    let mut writer = server.target.connect().await?;
    let before = server.cpu()?;
    let mut tick = tokio::time::interval(Duration::from_secs(1) / WRITES_PER_SECOND);
    for n in 0..n_writes {
        tick.tick().await;
        writer.post(namespace, &config_map(&name("watched", n), &stamp())).await?;
    }
    let all_seen = async {
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok::<_, Failure>(())
    };
    tokio::time::timeout(LAST_EVENT_TIMEOUT, all_seen).await.map_err(|_| "watchers have fallen behind")??;
    let cpu = (server.cpu()? - before) / each.as_secs_f64();
    let what = "100 watchers, 200 writes/s";
    Ok(vec![
        figure(format!("{what}: median lag"), lags.quantile(0.5), "ms"),
        figure(format!("{what}: lag of 99 %"), lags.quantile(0.99), "ms"),
        figure(format!("{what}: CPU of the server"), cpu * 100.0, "%"),
    ])
}

/// Measures the time of a LIST request for [`N_LISTED`] objects without pagination.
///
/// Several clients create the objects, because one client would take a minute on a real server. The response is read
/// completely, but not decoded.
async fn lists(server: &Server) -> Result<Vec<Figure>, Failure> {
    let path = "/api/v1/namespaces/kube-system/configmaps";
    let mut tasks = JoinSet::new();
    let n_writers = 16;
    for writer in 0..n_writers {
        let mut client = server.target.connect().await?;
        tasks.spawn(async move {
            for n in (writer..N_LISTED).step_by(n_writers) {
                client.post(path, &config_map(&name("listed", n), "0")).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    let mut client = server.target.connect().await?;
    let mut times = Vec::new();
    let before = server.cpu()?;
    for _ in 0..N_LISTS {
        let start = Instant::now();
        client.send(Method::GET, path, Bytes::new()).await?;
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    let cpu = (server.cpu()? - before) * 1_000.0 / f64::from(u32::try_from(N_LISTS)?);
    Ok(vec![
        figure("list of 10,000 objects of 1 KB", times[N_LISTS / 2], "ms"),
        figure("list of 10,000 objects of 1 KB: CPU of the server", cpu, "ms each"),
    ])
}
