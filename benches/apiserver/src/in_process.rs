//! Measures the embedded server without a socket, as tests in the same process use it.
//!
//! There is no TLS and no HTTP framing. So the figures are the cost of the server's logic alone: routing, admission,
//! validation, storage and watch events. Client and server share a thread pool, so CPU figures include the client,
//! which does little.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kctl_apiserver::{ApiServer, Body, InProcess, User};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};
use tower::ServiceExt;

use crate::{
    Failure,
    lag::{Lags, stamp, stamps},
    load::{Figure, figure},
    objects::{config_map, name, pod},
    process::{own_cpu, own_memory},
};

/// Path of the namespace with the objects.
const NAMESPACE: &str = "/api/v1/namespaces/default";
/// Number of watchers of one kind.
const N_WATCHERS: usize = 1_000;
/// Writes of that kind per second.
const WRITES_PER_SECOND: u32 = 1_000;
/// Longest wait for the last event after the last write.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of Pods for the measurement of memory.
const N_PODS: usize = 100_000;
/// Number of Pods whose status is patched.
const N_PATCHED: u32 = 200;
/// Number of requests between two reads of the clock, so that the cost of reading it does not count.
const N_BETWEEN: u32 = 100;

/// Sends a request. If it succeeds, returns the response body without reading it.
async fn open(server: &InProcess, method: Method, path: &str, kind: &str, body: Bytes) -> Result<Body, Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("accept", "application/json")
        .header("user-agent", "apiserver-bench")
        .body(Full::new(body))?;
    let response = server.clone().oneshot(request).await?;
    if response.status().is_success() {
        return Ok(response.into_body());
    }
    let code = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Err(format!("{path} was answered {code}: {}", String::from_utf8_lossy(&body)).into())
}

/// Sends a JSON value and reads the response.
async fn send(server: &InProcess, method: Method, path: &str, kind: &str, body: &Value) -> Result<Bytes, Failure> {
    send_text(server, method, path, kind, body.to_string()).await
}

/// Sends a serialized body and reads the response.
async fn send_text(server: &InProcess, method: Method, path: &str, kind: &str, body: String) -> Result<Bytes, Failure> {
    let body = open(server, method, path, kind, body.into()).await?;
    Ok(body.collect().await?.to_bytes())
}

/// Runs all loads, each for the time `each`.
pub(crate) async fn all(each: Duration) -> Result<Vec<Figure>, Failure> {
    let mut figures = patches(each).await?;
    figures.extend(watch(each).await?);
    Ok(figures)
}

/// Measures the writes of one client: merge patches, applies and status patches.
///
/// - Merge patches change one `ConfigMap` repeatedly.
/// - The same patches by a user with a role add the cost of RBAC.
/// - Applies measure the merge of managed fields, with and without a change.
/// - Status patches cycle through 200 Pods, as kubelets send them.
async fn patches(each: Duration) -> Result<Vec<Figure>, Failure> {
    let all = ApiServer::on_system_time();
    let server = all.service();
    let maps = format!("{NAMESPACE}/configmaps");
    send(&server, Method::POST, &maps, "application/json", &config_map("patched", "0")).await?;
    let merged = merges(each, &server).await?;
    let restricted = merges(each, &start_restricted(&all).await?).await?;
    let applied = rate(each, |n| apply(&server, n)).await?;
    let unchanged = rate(each, |_| apply(&server, 0)).await?;
    create_pods(&server, N_PATCHED).await?;
    let statuses = rate(each, |n| status(&server, n)).await?;
    Ok(vec![
        figure("merge patches of a ConfigMap of 1 KB", merged.0, "/s"),
        figure("merge patches of a ConfigMap of 1 KB: CPU", merged.1, "µs each"),
        figure("the same by a user with a role", restricted.0, "/s"),
        figure("the same by a user with a role: CPU", restricted.1, "µs each"),
        figure("server-side applies of a Pod", applied.0, "/s"),
        figure("server-side applies of a Pod: CPU", applied.1, "µs each"),
        figure("the same without a change: CPU", unchanged.1, "µs each"),
        figure("merge patches of the status of 200 Pods", statuses.0, "/s"),
        figure("merge patches of the status of 200 Pods: CPU", statuses.1, "µs each"),
    ])
}

/// Measures merge patches of a `ConfigMap` by the user that `server` authenticates.
async fn merges(each: Duration, server: &InProcess) -> Result<(f64, f64), Failure> {
    rate(each, |n| merge(server, n)).await
}

/// Patches a `ConfigMap` with a value that depends on `n`.
///
/// The value has to differ each time, because a patch without a change is not stored.
async fn merge(server: &InProcess, n: u32) -> Result<Bytes, Failure> {
    let patch = json!({ "data": { "stamp": n.to_string() } });
    let path = format!("{NAMESPACE}/configmaps/patched");
    send(server, Method::PATCH, &path, "application/merge-patch+json", &patch).await
}

/// Applies a Pod with an annotation that depends on `n`.
///
/// `force=true` takes over fields of other managers, so that no run ends with a conflict.
async fn apply(server: &InProcess, n: u32) -> Result<Bytes, Failure> {
    // Serialized once, so that client-side serialization does not count.
    static APPLIED: LazyLock<String> = LazyLock::new(|| {
        let mut object = pod("applied");
        object["metadata"]["annotations"] = json!({ "stamp": "STAMP" });
        object.to_string()
    });
    let path = format!("{NAMESPACE}/pods/applied?fieldManager=bench&force=true");
    let text = APPLIED.replacen("STAMP", &n.to_string(), 1);
    send_text(server, Method::PATCH, &path, "application/apply-patch+yaml", text).await
}

/// Creates `n` Pods.
async fn create_pods(server: &InProcess, n: u32) -> Result<(), Failure> {
    for n in 0..n {
        let pod = pod(&name("pod", usize::try_from(n)?));
        send(server, Method::POST, &format!("{NAMESPACE}/pods"), "application/json", &pod).await?;
    }
    Ok(())
}

/// Patches the status of a Pod, with a message that depends on `n`.
///
/// Consecutive numbers go to different Pods.
async fn status(server: &InProcess, n: u32) -> Result<Bytes, Failure> {
    let patch = json!({ "status": { "message": n.to_string() } });
    let path = format!("{NAMESPACE}/pods/{}/status", name("pod", usize::try_from(n % N_PATCHED)?));
    send(server, Method::PATCH, &path, "application/merge-patch+json", &patch).await
}

/// A request that `repeat` sends, for profilers.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Repeated {
    /// A merge patch of a `ConfigMap`.
    Merge,
    /// An apply of a Pod with a change.
    Apply,
    /// An apply of a Pod without a change.
    ApplyUnchanged,
    /// A new Pod.
    Create,
    /// A new `ConfigMap` of 1 KB.
    CreateMap,
    /// A patch of the status of one of 200 Pods.
    Status,
    /// A merge patch whose event all watchers get.
    Watched,
}

/// Sends a request `n` times, one after the other.
///
/// It prints nothing and runs no other load, so that a profile has this request alone.
pub(crate) async fn repeat(what: Repeated, n: u32) -> Result<(), Failure> {
    let server = ApiServer::on_system_time().service();
    let maps = format!("{NAMESPACE}/configmaps");
    send(&server, Method::POST, &maps, "application/json", &config_map("patched", "0")).await?;
    let mut watches = Vec::new();
    for _ in 0..if matches!(what, Repeated::Watched) { N_WATCHERS } else { 0 } {
        watches.push(open(&server, Method::GET, &format!("{maps}?watch=1"), "application/json", Bytes::new()).await?);
    }
    if matches!(what, Repeated::Status) {
        create_pods(&server, N_PATCHED).await?;
    }
    for n in 0..n {
        match what {
            Repeated::Merge | Repeated::Watched => merge(&server, n).await?,
            Repeated::Apply => apply(&server, n).await?,
            Repeated::ApplyUnchanged => apply(&server, 0).await?,
            Repeated::Status => status(&server, n).await?,
            Repeated::CreateMap => {
                let map = config_map(&name("created", usize::try_from(n)?), "0");
                send(&server, Method::POST, &maps, "application/json", &map).await?
            }
            Repeated::Create => {
                let pod = pod(&name("pod", usize::try_from(n)?));
                send(&server, Method::POST, &format!("{NAMESPACE}/pods"), "application/json", &pod).await?
            }
        };
        for watch in &mut watches {
            watch.frame().await.ok_or("a watch has ended")??;
        }
    }
    Ok(())
}

/// Returns the server for a user with a role in the namespace: each request is authorized by RBAC.
///
/// Administrators are members of `system:masters`, whose requests are allowed without evaluating a rule.
async fn start_restricted(server: &ApiServer) -> Result<InProcess, Failure> {
    let admin = server.service();
    let role = json!({
        "metadata": { "name": "patcher" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"] }],
    });
    let binding = json!({
        "metadata": { "name": "patcher" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "patcher" }],
    });
    for (kind, object) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/default/{kind}");
        send(&admin, Method::POST, &path, "application/json", &object).await?;
    }
    Ok(server.service_as(User::new("patcher")))
}

/// Sends requests one after another. Returns requests per second, and CPU time per request in microseconds.
///
/// `request` gets a number that never repeats, so that each request can change something.
async fn rate<F>(each: Duration, request: impl Fn(u32) -> F) -> Result<(f64, f64), Failure>
where
    F: Future<Output = Result<Bytes, Failure>>,
{
    let (before, start) = (own_cpu()?, Instant::now());
    let mut done = 0;
    while start.elapsed() < each {
        for _ in 0..N_BETWEEN {
            request(done).await?;
            done += 1;
        }
    }
    let cpu = own_cpu()? - before;
    Ok((f64::from(done) / start.elapsed().as_secs_f64(), cpu / f64::from(done) * 1e6))
}

/// Measures the event lag of [`N_WATCHERS`] watchers, and by how much the writer misses its rate.
///
/// A million events per second arrive at the watchers. If that takes all CPU, the writer falls behind, and the first figure shows it.
async fn watch(each: Duration) -> Result<Vec<Figure>, Failure> {
    let server = ApiServer::on_system_time().service();
    let maps = format!("{NAMESPACE}/configmaps");
    let n_writes = usize::try_from(u64::from(WRITES_PER_SECOND) * each.as_secs())?;
    let lags = Arc::new(Lags::default());
    let mut tasks = JoinSet::new();
    for _ in 0..N_WATCHERS {
        let path = format!("{maps}?watch=1");
        let mut body = open(&server, Method::GET, &path, "application/json", Bytes::new()).await?;
        let lags = lags.clone();
        tasks.spawn(async move {
            let (mut seen, mut rest) = (0, Vec::new());
            while seen < n_writes {
                let Some(frame) = body.frame().await else { return Err("a watch has ended".into()) };
                seen += stamps(&mut rest, frame?.data_ref().unwrap_or(&Bytes::new()), &lags);
            }
            Ok::<_, Failure>(())
        });
    }
    let (before, start) = (own_cpu()?, Instant::now());
    let mut tick = tokio::time::interval(Duration::from_secs(1) / WRITES_PER_SECOND);
    for n in 0..n_writes {
        tick.tick().await;
        send(&server, Method::POST, &maps, "application/json", &config_map(&name("watched", n), &stamp())).await?;
    }
    let wrote = start.elapsed();
    let all_seen = async {
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok::<_, Failure>(())
    };
    tokio::time::timeout(LAST_EVENT_TIMEOUT, all_seen).await.map_err(|_| "watchers have fallen behind")??;
    let what = "1,000 watchers, 1,000 writes/s";
    Ok(vec![
        figure(
            format!("{what}: writing took longer by"),
            (wrote.as_secs_f64() / each.as_secs_f64() - 1.0) * 100.0,
            "%",
        ),
        figure(format!("{what}: median lag"), lags.quantile(0.5), "ms"),
        figure(format!("{what}: lag of 99 %"), lags.quantile(0.99), "ms"),
        figure(
            format!("{what}: CPU of server and watchers"),
            (own_cpu()? - before) / start.elapsed().as_secs_f64() * 100.0,
            "%",
        ),
    ])
}

/// Measures the memory of 100,000 Pods, and compares it with the size of their compact JSON.
///
/// It runs in a separate process, because memory that other loads have freed would count. Compact JSON is the lower
/// bound for a store without compression.
pub(crate) async fn memory() -> Result<Vec<Figure>, Failure> {
    let server = ApiServer::on_system_time().service();
    let pods = format!("{NAMESPACE}/pods");
    let before = own_memory()?;
    let mut text = 0;
    for n in 0..N_PODS {
        text += send(&server, Method::POST, &pods, "application/json", &pod(&name("pod", n))).await?.len();
    }
    // Includes the watch history of the last writes.
    let memory = own_memory()? - before;
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let mb = |bytes: usize| bytes as f64 / 1e6;
    Ok(vec![
        figure("100,000 Pods: compact JSON", mb(text), "MB"),
        figure("100,000 Pods: memory", mb(memory), "MB"),
        figure("100,000 Pods: memory in relation to compact JSON", mb(memory) / mb(text), "times"),
    ])
}
