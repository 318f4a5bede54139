//! The program on kctl for the comparison of whole processes (`harness/README.md`).
//!
//! Environment variables select the job, and the harness reads the lines `SYNCED`, `READY` and `RECONCILED`.
//!
//! | `BENCH_MODE` | job |
//! |---|---|
//! | `sync` | caches all objects of `BENCH_KIND`: time and memory of the initial list |
//! | `controller` | reconciles Fleets: time, CPU and requests of a full pass |
//! | `informers` | runs `BENCH_EXPECT` empty informers: memory of one |
//!
//! `BENCH_NAMESPACE` names the namespace of all objects. For comparisons within kctl, `BENCH_THREADS` sets the number of threads, and
//! `BENCH_HTTP1` uses kube's client over HTTP/1.1 instead of kctl's over HTTP/2.
//!
//! The counterparts in `harness/peer-cr` and `harness/peer-kube` do the same jobs with controller-runtime and kube-rs.

use std::{
    collections::HashSet,
    env,
    io::Write,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use kctl::{
    kube::{Client, Config},
    object::{Kind, Object},
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::{
    source::{ListLimiter, Source},
    store::SharedStore,
};
use tokio::task::JoinHandle;

/// The kind of the job `controller`: a number of ConfigMaps with a payload.
#[resource(group = "bench.example.com", version = "v1", kind = "Fleet", namespaced, status = "FleetStatus")]
pub struct FleetSpec {
    /// Number of ConfigMaps.
    pub replicas: i32,
    /// Contents of each of them: sets the size of an object.
    #[serde(default)]
    pub payload: String,
}

/// The status that each reconcile writes.
#[schema]
pub struct FleetStatus {
    pub ready_replicas: i32,
    pub observed_generation: i64,
}

/// Keeps `spec.replicas` ConfigMaps for each Fleet.
///
/// Like the other programs, it creates and deletes them one by one, and does not call `converge`.
#[controller(owns = ConfigMap, concurrency = 10, namespaces = [namespace()])]
async fn fleet(fleet: Arc<Fleet>, cx: Context<fleet>) -> Result<Action> {
    let configs = cx.owned::<ConfigMap>();
    let names: HashSet<String> = configs.iter().map(|config| config.name_any()).collect();
    let wanted: Vec<String> = (0..fleet.spec.replicas).map(|i| format!("{}-{i}", fleet.name_any())).collect();
    for name in wanted.iter().filter(|name| !names.contains(*name)) {
        configs.create(config(&fleet, name)).or_get().await?;
    }
    for config in configs.iter().filter(|config| !wanted.contains(&config.name_any())) {
        configs.delete(config.as_ref()).await?;
    }
    let generation = fleet.metadata.generation.unwrap_or_default();
    cx.patch_status(FleetStatus { ready_replicas: fleet.spec.replicas, observed_generation: generation }).await?;
    print_reconciles(&fleet);
    Ok(Action::await_change())
}

/// Returns an owned `ConfigMap`.
///
/// `cx.owned` adds the owner reference.
fn config(fleet: &Fleet, name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            labels: Some([("fleet".to_owned(), fleet.name_any())].into()),
            ..ObjectMeta::default()
        },
        data: Some([("payload".to_owned(), fleet.spec.payload.clone())].into()),
        ..ConfigMap::default()
    }
}

/// Names of reconciled Fleets. `None` before the start, and after the line has been printed.
static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
/// Number of reconciles, including repeated ones.
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Counts a reconcile, and prints a line once `BENCH_EXPECT` different Fleets are reconciled.
///
/// The total shows how many reconciles the program's own writes have caused.
fn print_reconciles(fleet: &Fleet) {
    let total = TOTAL.fetch_add(1, Ordering::Relaxed) + 1;
    let expected: usize = env::var("BENCH_EXPECT").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    if expected == 0 {
        return;
    }
    let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(names) = seen.as_mut() else { return };
    names.insert(fleet.name_any());
    if names.len() == expected {
        print_line(&format!("RECONCILED {expected} total={total}"));
        *seen = None;
    }
}

/// Prints a line and flushes it, because standard output is a pipe.
fn print_line(line: &str) {
    let mut out = std::io::stdout();
    // If the harness has ended, the line does not matter.
    let _printed = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Returns the namespace of the job.
fn namespace() -> String {
    env::var("BENCH_NAMESPACE").unwrap_or_else(|_| "default".into())
}

/// Runs on one thread, as new projects do, or on `BENCH_THREADS` threads.
fn main() -> Result<()> {
    let n_threads = env::var("BENCH_THREADS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut runtime = match n_threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if n_threads > 1 {
        runtime.worker_threads(n_threads);
    }
    runtime.enable_all().build()?.block_on(run())
}

/// Connects, and runs the job of `BENCH_MODE`.
async fn run() -> Result<()> {
    let config = Config::infer().await?;
    // kube's own client connects over HTTP/1.1.
    let client = if env::var_os("BENCH_HTTP1").is_some() { Client::try_from(config)? } else { kctl::client(config)? };
    match env::var("BENCH_MODE").unwrap_or_default().as_str() {
        "sync" => sync(client).await,
        "controller" => control(client).await,
        "informers" => informers(client).await,
        other => Err(format!("BENCH_MODE is `{other}`: `sync`, `controller` or `informers`").into()),
    }
}

/// Runs the job `sync`: caches all objects of `BENCH_KIND`.
///
/// The harness measures the time until `SYNCED`, and then the memory of the idle process.
async fn sync(client: Client) -> Result<()> {
    match env::var("BENCH_KIND").unwrap_or_default().as_str() {
        "Pod" => cache::<Pod>(client, String::new(), ListLimiter::default()).await?,
        _ => cache::<ConfigMap>(client, String::new(), ListLimiter::default()).await?,
    }
    Ok(())
}

/// Runs `BENCH_EXPECT` informers without objects, to measure memory and CPU of one.
///
/// They share the limit on concurrent lists, as the informers of a manager do.
async fn informers(client: Client) -> Result<()> {
    let n: usize = env::var("BENCH_EXPECT").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let list_limiter = ListLimiter::default();
    // The selectors differ, because informers with equal selectors are shared.
    let all = (0..n).map(|i| cache::<ConfigMap>(client.clone(), format!("none=x{i}"), list_limiter.clone()));
    let all: Vec<JoinHandle<()>> = all.collect();
    for informer in all {
        informer.await?;
    }
    Ok(())
}

/// Caches the objects of kind `K` with these labels. Each object is checked against the type, as for a controller. It
/// runs in tasks, like an informer of a manager.
fn cache<K: Object>(client: Client, labels: String, list_limiter: ListLimiter) -> JoinHandle<()> {
    let mut config = WatchConfig::new(Kind::of::<K>());
    (config.labels, config.namespaces) = (labels, vec![namespace()]);
    let store = Arc::new(SharedStore::for_namespaces(&config.namespaces));
    let source = Arc::new(Source::new(client, config, store.clone()).with_list_limiter(list_limiter));
    let _typed = source.view::<K>();
    let writing = store.clone();
    tokio::spawn(writing.write());
    tokio::spawn(async move {
        store.wait_until_synced().await;
        print_line(&format!("SYNCED {}", store.len()));
    });
    tokio::spawn(async move { source.run().await })
}

/// Runs the job `controller`, and prints `READY` once all caches are synced.
///
/// The harness creates the Fleets after `READY`, or before the program starts to measure a restart.
async fn control(client: Client) -> Result<()> {
    *SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(HashSet::new());
    let manager = App::new("bench").controller::<fleet>().manager(client).await?;
    let view = manager.view();
    let ready = async {
        for source in view.sources() {
            source.store().wait_until_synced().await;
        }
        print_line("READY");
    };
    let (ended, ()) = tokio::join!(manager.run(std::future::pending()), ready);
    Ok(ended?)
}
