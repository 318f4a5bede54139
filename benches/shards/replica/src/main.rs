//! The operator that `shards-bench` runs as one or several processes: a `PodGroup` owns its Pods.
//!
//! It caches no kind as a whole, so each replica can limit all of its caches to its slots.
//!
//! With `BENCH_JOURNAL`, it appends a line to that file at the start and at the end of each reconcile. From these
//! files, the benchmark knows which replica reconciled a key at which time.

use std::{
    collections::HashSet,
    fs::File,
    io::Write,
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use kctl::prelude::*;

/// A number of Pods.
#[resource(group = "bench.example.com", version = "v1", kind = "PodGroup", namespaced, status = "PodGroupStatus")]
pub struct PodGroupSpec {
    /// Number of Pods.
    pub replicas: i32,
    /// A number that the benchmark raises to change the object.
    #[serde(default)]
    pub change: i64,
}

/// The status that each reconcile writes.
#[schema]
pub struct PodGroupStatus {
    /// Number of Pods.
    pub replicas: i32,
    /// `spec.change` of the last reconcile.
    pub change: i64,
}

/// Creates the missing Pods, and writes the status.
#[controller(owns = Pod(create), concurrency = 10)]
async fn pod_group(group: Arc<PodGroup>, cx: Context<pod_group>) -> Result<Action> {
    let mut entry = Entry::start(&group);
    let pods = cx.owned::<Pod>();
    let names: HashSet<String> = pods.iter().map(|pod| pod.name_any()).collect();
    let wanted = (0..group.spec.replicas).map(|i| format!("{}-{i}", group.name_any()));
    for name in wanted.filter(|name| !names.contains(name)) {
        pods.create(pod(name)?).or_get().await?;
    }
    cx.patch_status(PodGroupStatus { replicas: group.spec.replicas, change: group.spec.change }).await?;
    entry.is_done = true;
    Ok(Action::await_change())
}

/// Returns a Pod as a Deployment has it, of about 3 KB when it is stored with defaults.
fn pod(name: String) -> Result<Pod> {
    let container = |name: &str| {
        kctl::json!({
            "name": name,
            "image": "registry.example.com/team/application:1.2.3",
            "args": ["--listen=:8080", "--log-format=json", "--cluster-domain=cluster.local"],
            "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
            "env": [
                { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "REGION", "value": "somewhere-1" },
            ],
            "resources": { "limits": { "memory": "256Mi" }, "requests": { "cpu": "100m", "memory": "128Mi" } },
            "readinessProbe": { "httpGet": { "path": "/readyz", "port": 8080 }, "periodSeconds": 5 },
            "volumeMounts": [{ "name": "config", "mountPath": "/etc/application", "readOnly": true }],
        })
    };
    let mut pod: Pod = kctl::from_json(kctl::json!({
        "metadata": { "labels": { "app": "bench", "pod-template-hash": "5d4f8c7b9" } },
        "spec": {
            "containers": [container("application"), container("sidecar")],
            "volumes": [{ "name": "config", "configMap": { "name": "application" } }],
        },
    }))?;
    pod.metadata.name = Some(name);
    Ok(pod)
}

/// The file of `BENCH_JOURNAL`.
static JOURNAL: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os("BENCH_JOURNAL")?;
    File::options().create(true).append(true).open(path).ok()
});

/// A reconcile in the journal. Dropping the entry writes its end, also if the reconcile is cancelled.
struct Entry {
    /// The name of the primary.
    name: String,
    /// Its `spec.change`.
    change: i64,
    /// `false` until the reconcile has written its status.
    is_done: bool,
}

impl Entry {
    /// Writes the start of a reconcile (`S`).
    fn start(group: &PodGroup) -> Self {
        let entry = Self { name: group.name_any(), change: group.spec.change, is_done: false };
        entry.write('S');
        entry
    }

    /// Appends a line. Without `BENCH_JOURNAL` it does nothing.
    fn write(&self, event: char) {
        let Some(mut file) = JOURNAL.as_ref() else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let line = format!("{event} {now} {} {}\n", self.name, self.change);
        // One `write` per line, so that a kill leaves no partial line.
        let _written = file.write_all(line.as_bytes());
    }
}

impl Drop for Entry {
    /// Writes the end of the reconcile: `E` if it succeeded, `F` if it failed or was cancelled.
    fn drop(&mut self) {
        self.write(if self.is_done { 'E' } else { 'F' });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    App::new("pod-group").controller::<pod_group>().main().await
}
