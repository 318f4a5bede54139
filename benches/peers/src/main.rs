//! kctl's program in the whole-process comparison: the jobs and the lines of output that the harness asks for.

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
    watches::Identity,
};
use kctl_runtime::{
    source::{ListLimiter, Source},
    store::SharedStore,
};
use tokio::task::JoinHandle;

#[resource(group = "bench.example.com", version = "v1", kind = "Fleet", namespaced, status = "FleetStatus")]
pub struct FleetSpec {
    pub replicas: i32,
    #[serde(default)]
    pub payload: String,
}

#[schema]
pub struct FleetStatus {
    pub ready_replicas: i32,
    pub observed_generation: i64,
}

/// Keeps `spec.replicas` config maps for every fleet.
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
    reconciled(&fleet);
    Ok(Action::await_change())
}

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

static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
static TOTAL: AtomicU64 = AtomicU64::new(0);

/// Counts, and says when as many fleets as expected have been reconciled.
fn reconciled(fleet: &Fleet) {
    let total = TOTAL.fetch_add(1, Ordering::Relaxed) + 1;
    let expected: usize = env::var("BENCH_EXPECT").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    if expected == 0 {
        return;
    }
    let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(names) = seen.as_mut() else { return };
    names.insert(fleet.name_any());
    if names.len() == expected {
        say(&format!("RECONCILED {expected} total={total}"));
        *seen = None;
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    // The harness reads the line; when it is gone there is nobody to tell.
    let _told = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn namespace() -> String {
    env::var("BENCH_NAMESPACE").unwrap_or_else(|_| "default".into())
}

/// On one thread, as new projects are; `BENCH_THREADS` compares with more.
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

async fn run() -> Result<()> {
    let config = Config::infer().await?;
    // To compare with what kube connects by: HTTP/1.1.
    let client = if env::var_os("BENCH_HTTP1").is_some() { Client::try_from(config)? } else { kctl::client(config)? };
    match env::var("BENCH_MODE").unwrap_or_default().as_str() {
        "sync" => sync(client).await,
        "controller" => control(client).await,
        "informers" => informers(client).await,
        other => Err(format!("BENCH_MODE is `{other}`: `sync`, `controller` or `informers`").into()),
    }
}

/// Caches all objects of a kind.
async fn sync(client: Client) -> Result<()> {
    match env::var("BENCH_KIND").unwrap_or_default().as_str() {
        "Pod" => cache::<Pod>(client, String::new(), ListLimiter::default()).await?,
        _ => cache::<ConfigMap>(client, String::new(), ListLimiter::default()).await?,
    }
    Ok(())
}

/// Runs `BENCH_EXPECT` informers of nothing, for what each of them and its watch take.
async fn informers(client: Client) -> Result<()> {
    let n: usize = env::var("BENCH_EXPECT").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let list_limiter = ListLimiter::default();
    // Different ones, or they would be one.
    let all = (0..n).map(|i| cache::<ConfigMap>(client.clone(), format!("none=x{i}"), list_limiter.clone()));
    let all: Vec<JoinHandle<()>> = all.collect();
    for informer in all {
        informer.await?;
    }
    Ok(())
}

/// Caches what can be read as `K` and has these labels: every object is checked, as for a controller.
/// It runs in tasks, as those of a manager do.
fn cache<K: Object>(client: Client, labels: String, list_limiter: ListLimiter) -> JoinHandle<()> {
    let identity = Identity { labels, namespaces: vec![namespace()], ..Identity::all(Kind::of::<K>()) };
    let store = Arc::new(SharedStore::of_namespaces(&identity.namespaces));
    let source = Arc::new(Source::new(client, identity, store.clone()).with_list_limiter(list_limiter));
    let _typed = source.view::<K>();
    let writing = store.clone();
    tokio::spawn(writing.write());
    tokio::spawn(async move {
        store.wait_until_synced().await;
        say(&format!("SYNCED {}", store.len()));
    });
    tokio::spawn(async move { source.run().await })
}

/// Runs the controller.
async fn control(client: Client) -> Result<()> {
    *SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(HashSet::new());
    let manager = App::new("bench").controller::<fleet>().manager(client).await?;
    let view = manager.view();
    let told = async {
        for source in view.sources() {
            source.store().wait_until_synced().await;
        }
        say("READY");
    };
    let (ended, ()) = tokio::join!(manager.run(std::future::pending()), told);
    Ok(ended?)
}
