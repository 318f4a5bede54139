//! Readiness and liveness, computed from a [`View`] at the moment of each probe.
//!
//! Ready means that this process does its work or could take over at once; a standby is ready. Alive means
//! that nothing is stuck which only a restart would fix. A missing permission or an unreachable API server
//! makes a process unready, never dead: a restart would not help.
//!
//! These are the probes of a manager. A webhook server answers `/readyz` on its own port
//! (`kctl-webhook/src/server/mod.rs`), and a Deployment with webhooks probes readiness there. So a check that is added
//! here does not affect the readiness of such a Pod. A program with webhooks alone has `serve_probes` (`serve/mod.rs`).
//!
//! | Check | Probe | Fails if |
//! |---|---|---|
//! | `cache-RESOURCE`, or `cache-RESOURCE-CLUSTER` for another cluster | ready | the first list is not complete, or list or watch fails |
//! | `watch-RESOURCE` | ready | list or watch of a kind that was opened at run time fails. A kind that does not exist, a first list under way and any failure on another cluster are notes |
//! | `leader-election` | ready | the last request about the Lease failed, or this process led and no longer does |
//! | `shards` | ready | the same for a Lease of the settings, a slot or a seat, or others run with other settings |
//! | `controller-ring` | ready | the same for the Lease of the shard, or another process has the name of the shard |
//! | names of [`Manager::ready_when`](super::Manager::ready_when) | ready | the function returns an error |
//! | `store-RESOURCE` | live | changes wait, and none was applied for [`STUCK_AFTER`] |
//! | `store-watch-RESOURCE` | live | the same for the cache of a kind that was opened at run time |
//! | `handler-CONTROLLER-N` | live | a `map` or `when` function has not returned for [`STUCK_AFTER`] |
//! | `controller-NAME` | live | keys wait and no worker takes one, or a function runs a minute longer than its timeout |
//! | `leader-election` | live | a leader has not noticed the end of its Lease for 20 s |
//! | `ping` | both | never |
//!
//! Names, paths and output follow Kubernetes' own components (`k8s.io/apiserver`, `server/healthz`):
//!
//! ```text
//! $ curl 'localhost:8081/readyz?verbose'
//! [+]cache-podsets.apps.example.com ok: 3 objects
//! [+]cache-pods ok: 9 objects
//! [+]leader-election ok: leads
//! [+]ping ok
//! readyz check passed
//! ```

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    View,
    lease::{ElectionState, Leadership, other_process},
    metrics::Metrics,
    ring::RingView,
    shards::ShardView,
};
use crate::{
    key::ObjectKey,
    queue::WorkQueue,
    reconcile::TimedRuns,
    shard::Gate,
    source::{Source, WatchConfig},
};

/// Time after the end of its Lease within which a leader may notice it (controller-runtime passes the same
/// to client-go's `HealthzAdaptor`).
const LEASE_TOLERANCE: Duration = Duration::from_secs(20);
/// Work that makes no progress for this time counts as stuck: changes of a store, a handler, a queue.
pub const STUCK_AFTER: Duration = Duration::from_secs(60);

/// The result of one check of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// Its name, which is the last part of its path: `/readyz/cache-pods`.
    pub name: String,
    /// `Ok` with a note, which may be empty, or `Err` with what is wrong.
    pub result: Result<String, String>,
}

/// Answers the probes of a kubelet.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # use std::sync::Arc;
/// # use kctl_runtime::manager::Manager;
/// # use kube::client::Body;
/// # type Response = http::Response<Body>;
/// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
/// # let client = kube::Client::new(tower::service_fn(offline), "default");
/// # let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {}));
/// use kctl_runtime::manager::health::Health;
///
/// let health = Health::new(manager.view(), manager.metrics().clone());
/// assert!(health.ready().iter().all(|check| check.result.is_ok()));
/// assert!(health.live().iter().any(|check| check.name == "ping"));
/// # });
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// [`Manager::serve_health`](super::Manager::serve_health) serves it; use this type to answer probes on a
/// server that you have already.
pub struct Health {
    view: View,
    metrics: Metrics,
    /// Checks that looked stuck at the last probe: their progress counter, and the time since which it has not changed.
    suspects: Mutex<HashMap<String, (u64, Instant)>>,
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

impl Health {
    /// Creates the checks of a manager. Keep the value between probes: [`live`](Self::live) compares them.
    pub fn new(view: View, metrics: Metrics) -> Self {
        Self { view, metrics, suspects: Mutex::default() }
    }

    /// Returns the checks of `/readyz`.
    ///
    /// There is one for each cache (full, and its watch works), for each watch opened at run time, and for each check
    /// of [`ready_when`](super::Manager::ready_when). The leader election, the shards or the controller ring have one,
    /// too. A standby is ready, because a rolling update would otherwise wait for a Lease that the old Pod holds.
    pub fn ready(&self) -> Vec<Check> {
        let sources = self.view.sources();
        let caches = cache_paths(sources).into_iter().zip(sources);
        let mut checks: Vec<Check> =
            caches.map(|(name, source)| Check { name: format!("cache-{name}"), result: cache(source) }).collect();
        let opened = self.runtime_caches();
        let watches = cache_paths(&opened).into_iter().zip(&opened);
        checks.extend(watches.map(|(name, source)| Check { name: format!("watch-{name}"), result: watch(source) }));
        match (self.view.leadership(), self.view.shards()) {
            (Some(leadership), Some(shards)) => {
                checks.push(Check { name: "shards".into(), result: sharding(leadership, shards) });
            }
            (Some(leadership), None) => {
                let check = match self.view.controller_ring() {
                    Some(ring) => Check { name: "controller-ring".into(), result: in_ring(leadership, ring) },
                    None => Check { name: "leader-election".into(), result: election(leadership) },
                };
                checks.push(check);
            }
            _ => {}
        }
        let others = self.view.others_ready.iter();
        checks.extend(others.map(|other| Check { name: other.name.into(), result: (other.is_ready)() }));
        checks.push(Check { name: "ping".into(), result: Ok(String::new()) });
        checks
    }

    /// Returns the checks of `/livez` and `/healthz`.
    ///
    /// They fail only for what a restart fixes. A check fails if for [`STUCK_AFTER`] a store or a handler has taken no
    /// changes, or the workers of a queue have taken no keys. It also fails if a function has run for that long beyond
    /// its timeout, because it blocks its thread. The other case is a leader that does not notice the end of its Lease.
    pub fn live(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let sources = self.view.sources();
        let opened = self.runtime_caches();
        let controller_caches = cache_paths(sources).into_iter().map(|name| format!("store-{name}")).zip(sources);
        let at_run_time = cache_paths(&opened).into_iter().map(|name| format!("store-watch-{name}")).zip(&opened);
        for (name, source) in controller_caches.chain(at_run_time) {
            let store = source.store();
            let stuck = self.stuck_for(&name, (store.backlog() > 0).then(|| store.n_applied()));
            checks.push((name, "deltas wait and none is taken", stuck));
        }
        for (n, spawned) in self.view.spawned_handlers().iter().enumerate() {
            let name = format!("handler-{}-{}", spawned.controller(), n + 1);
            let stuck = self.stuck_for(&name, (spawned.waiting() > 0).then(|| spawned.n_taken()));
            checks.push((name, "`map` or `when` of a relation does not return", stuck));
        }
        let mut checks: Vec<Check> =
            checks.into_iter().map(|(name, what, stuck)| stuck_check(name, what, stuck)).collect();
        let controllers = self.view.controllers().iter().zip(self.view.awaited_caches());
        let controllers = controllers.zip(&self.view.gates).zip(&self.view.timed_runs);
        for ((((spec, queue), caches), gate), runs) in controllers {
            let stats = queue.stats();
            let idle = stats.depth > 0 && stats.processing == 0 && self.should_run_workers(caches, gate);
            let name = format!("controller-{}", spec.name);
            let stuck = self.stuck_for(&name, idle.then(|| self.metrics.n_reconciles(&spec.name)));
            let mut check = stuck_check(name, "keys wait and no worker takes one", stuck);
            if check.result.is_ok() {
                check.result = describe_longest(queue, runs, spec.timeout);
            }
            checks.push(check);
        }
        if let Some(leadership) = self.view.leadership() {
            let result = leadership.check(LEASE_TOLERANCE).map(|()| String::new());
            checks.push(Check { name: "leader-election".into(), result });
        }
        checks.push(Check { name: "ping".into(), result: Ok(String::new()) });
        // A cache that was closed while it looked stuck may be opened again under the same name.
        self.suspects.lock().retain(|name, _progress| checks.iter().any(|check| check.name == *name));
        checks
    }

    /// Returns the caches that were opened at run time, sorted by identity.
    fn runtime_caches(&self) -> Vec<Arc<Source>> {
        let declared = |source: &Arc<Source>| self.view.sources().iter().any(|own| Arc::ptr_eq(own, source));
        let open = self.view.informers.open().into_iter().map(|(source, _users)| source);
        let mut opened: Vec<_> = open.filter(|source| !declared(source)).collect();
        opened.sort_by(|a, b| a.config().cmp(b.config()));
        opened
    }

    /// Returns `true` if the workers of a controller with these caches and this gate should be running.
    ///
    /// A standby has no workers, and a controller waits for its own caches. It also waits until a new leader has compared
    /// them, which an API server can delay, and until its handlers have seen all objects, which may take a slow `map`
    /// minutes. Keys are queued before that.
    fn should_run_workers(&self, caches: &[Arc<Source>], gate: &Gate) -> bool {
        gate.is_ready()
            && self.view.leadership().is_none_or(Leadership::is_leading)
            && caches.iter().all(|source| source.store().is_synced())
    }

    /// Returns how long something has made no progress, once that is [`STUCK_AFTER`] or longer.
    ///
    /// `progress` is a counter that grows with each step; `None` means that no work waits.
    fn stuck_for(&self, name: &str, progress: Option<u64>) -> Option<Duration> {
        let mut suspects = self.suspects.lock();
        let Some(progress) = progress else {
            suspects.remove(name);
            return None;
        };
        let now = Instant::now();
        let (last_progress, since) = suspects.entry(name.into()).or_insert((progress, now));
        if *last_progress != progress {
            (*last_progress, *since) = (progress, now);
        }
        Some(now.duration_since(*since)).filter(|since| *since >= STUCK_AFTER)
    }
}

fn stuck_check(name: String, what: &str, stuck: Option<Duration>) -> Check {
    let result = stuck.map_or(Ok(String::new()), |since| Err(format!("{what}, for {} s", since.as_secs())));
    Check { name, result }
}

/// Describes the longest reconcile, once it takes a minute.
///
/// A long reconcile may be intended. It is an error only if its function runs beyond the declared timeout: a future that
/// cannot be cancelled blocks its thread. The lists before the function, after a write with an unknown outcome, may take
/// longer. They wait for the API server, so a restart would not help.
fn describe_longest(
    queue: &WorkQueue<ObjectKey>,
    runs: &TimedRuns,
    timeout: Option<Duration>,
) -> Result<String, String> {
    let reconciling = queue.processing_for(STUCK_AFTER);
    let others = match reconciling.len().saturating_sub(1) {
        0 => String::new(),
        others => format!(", and {others} more for a minute or longer"),
    };
    let describe =
        |key: &ObjectKey, took: Duration| format!("{key} has been reconciled for {} s{others}", took.as_secs());
    if let Some(timeout) = timeout
        && let Some((key, took)) = runs.longest()
        && took >= timeout.saturating_add(STUCK_AFTER)
    {
        return Err(format!("{}, although its timeout is {timeout:?}: it blocks its thread", describe(&key, took)));
    }
    Ok(reconciling.first().map(|(key, took)| describe(key, *took)).unwrap_or_default())
}

/// Returns the resources of caches as parts of a path. Several caches of one resource and cluster are numbered.
fn cache_paths(sources: &[Arc<Source>]) -> Vec<String> {
    number_repeated(&sources.iter().map(|source| cache_name(source.config())).collect::<Vec<_>>())
}

/// Returns the resource of a cache, with its cluster unless that is the main one.
fn cache_name(config: &WatchConfig) -> String {
    let WatchConfig { kind, cluster, .. } = config;
    let resource = if kind.group.is_empty() { kind.plural.clone() } else { format!("{}.{}", kind.plural, kind.group) };
    if cluster.is_empty() { resource } else { format!("{resource}-{cluster}") }
}

/// Appends a number to each name that has occurred before.
///
/// A number that would repeat another name is skipped: the first cache of a cluster `2` is `pods-2` as well.
fn number_repeated(names: &[String]) -> Vec<String> {
    let unnumbered: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let numbered = names.iter().map(|name| {
        let n = counts.entry(name).or_default();
        *n += 1;
        if *n == 1 {
            return name.clone();
        }
        loop {
            let candidate = format!("{name}-{n}");
            if !unnumbered.contains(candidate.as_str()) {
                return candidate;
            }
            *n += 1;
        }
    });
    numbered.collect()
}

/// Checks a cache that was opened at run time.
///
/// A kind that does not exist, and any failure on another cluster, such as a 403, is only a note: this process cannot fix
/// either. So is a first list that is under way, because a watch may be opened at any time.
fn watch(source: &Source) -> Result<String, String> {
    let elsewhere = !source.config().cluster.is_empty();
    let missing = source.health().failure.is_some_and(|failure| failure.is_not_found());
    let waits = !source.store().is_synced() && source.health().failure.is_none();
    match cache(source) {
        Err(why) if elsewhere || missing || waits => Ok(why),
        status => status,
    }
}

/// Checks a cache: it is full and its watch works. An optional kind that is not served passes.
fn cache(source: &Source) -> Result<String, String> {
    if source.is_absent() {
        return Ok("optional, and not served by the API server now".into());
    }
    if let Some(failure) = source.health().failure {
        let kind = &source.config().kind;
        let lacks = if failure.is_forbidden() {
            format!("; give its service account `list` and `watch` on `{}`: generate-rbac prints the role", kind.plural)
        } else {
            String::new()
        };
        return Err(format!("{failure}{lacks}"));
    }
    if !source.store().is_synced() {
        return Err("the first list is not complete yet".into());
    }
    Ok(format!("{} objects", source.store().len()))
}

/// Checks the election: its last request worked. A standby passes and names the leader.
fn election(leadership: &Leadership) -> Result<String, String> {
    if let Some(failure) = leadership.failure() {
        return Err(failure);
    }
    match leadership.state() {
        ElectionState::Leading(_) => Ok("leads".into()),
        ElectionState::Standby if leadership.holder().is_empty() => Ok("standby; no process leads yet".into()),
        ElectionState::Standby => Ok(format!("standby; {} leads", leadership.holder())),
        ElectionState::Over(_) => Err("this process lost the Lease and exits".into()),
    }
}

/// Checks that this replica may own slots: all replicas have its settings. One without slots passes.
fn sharding(leadership: &Leadership, shards: &ShardView) -> Result<String, String> {
    if let Some(failure) = leadership.failure() {
        return Err(failure);
    }
    match leadership.state() {
        ElectionState::Leading(_) => shards.failure().map_or_else(|| Ok(shards.note()), Err),
        ElectionState::Standby => {
            shards.waits_because().map_or_else(|| Ok("waits for the Lease of the settings".into()), Err)
        }
        ElectionState::Over(_) => Err("this process lost the Lease and exits".into()),
    }
}

/// Checks that this shard holds its Lease. Until then the sharder assigns it no objects.
fn in_ring(leadership: &Leadership, ring: &RingView) -> Result<String, String> {
    if let Some(failure) = leadership.failure() {
        return Err(failure);
    }
    let (shard, ring) = (ring.config().shard(), ring.config().ring());
    match leadership.state() {
        ElectionState::Leading(_) => Ok(format!("shard {shard} of the ring {ring}")),
        ElectionState::Standby if leadership.holder().is_empty() => Ok(format!("shard {shard} acquires its Lease")),
        ElectionState::Standby if leadership.holder() == other_process(shard) => Err(format!(
            "another process holds the Lease of shard {shard}: it ends within the Lease duration if that process is gone; \
             otherwise give each process its own --leader-election-identity"
        )),
        ElectionState::Standby => Ok(format!("shard {shard} waits for its Lease, which {} holds", leadership.holder())),
        ElectionState::Over(_) => Err("this process lost the Lease and exits".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use futures::FutureExt;
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    use kube::{Client, Config};

    use super::*;
    use crate::{
        handler::{HANDLED_AT_ONCE, SpawnedHandler},
        manager::Manager,
        object::{Kind, Stored},
        queue::QueueConfig,
        store::{Change, Handler, Origin},
    };

    fn manager() -> Manager {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        Manager::new(client, "test", Arc::new(|_report| {}))
    }

    #[test]
    fn checks_of_caches_name_the_cluster() {
        let pods = || WatchConfig::of::<Pod>();
        let configs = [
            pods(),
            pods().on("member2"),
            pods().labels("tier=web"),
            pods().on("member2").labels("tier=web"),
            WatchConfig::of::<Deployment>().on("member1"),
        ];
        let names = number_repeated(&configs.each_ref().map(cache_name));
        assert_eq!(names, ["pods", "pods-member2", "pods-2", "pods-member2-2", "deployments.apps-member1"]);
    }

    #[test]
    fn numeric_cluster_name_has_its_own_check() {
        let pods = || WatchConfig::of::<Pod>();
        let configs = [
            pods(),
            pods().labels("tier=web"),
            pods().labels("tier=db"),
            pods().on("2"),
            pods().on("2").labels("tier=web"),
        ];
        let names = number_repeated(&configs.each_ref().map(cache_name));
        assert_eq!(names, ["pods", "pods-3", "pods-4", "pods-2", "pods-2-2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn closed_cache_is_not_suspected_when_reopened() {
        let manager = manager();
        let health = Health::new(manager.view(), manager.metrics().clone());
        let name = "store-watch-pods";
        assert_eq!(health.stuck_for(name, Some(7)), None);
        assert!(health.live().iter().all(|check| check.name != name), "the cache is closed");
        tokio::time::advance(STUCK_AFTER).await;
        assert_eq!(health.stuck_for(name, Some(7)), None);
        tokio::time::advance(STUCK_AFTER).await;
        assert_eq!(health.stuck_for(name, Some(7)), Some(STUCK_AFTER));
    }

    #[tokio::test(start_paused = true)]
    async fn handler_is_stuck_at_one_long_change() {
        let pod = Arc::new(Stored::accept(&Kind::of::<Pod>(), r#"{"metadata":{"name":"a"}}"#).unwrap());
        // A turn of the first handler takes longer than `STUCK_AFTER`, and each of its changes does not.
        for (seconds, is_stuck) in [(10, false), (70, true)] {
            let (manager, health) = (manager(), Arc::new(OnceLock::<Health>::new()));
            let (probed, failed) = (health.clone(), Arc::<Mutex<Vec<String>>>::default());
            let names = failed.clone();
            let handler: Handler = Arc::new(move |_change, _origin| {
                for wait in [0, seconds] {
                    // Advances the clock at its first poll.
                    let _yields = tokio::time::advance(Duration::from_secs(wait)).now_or_never();
                    let checks = probed.get().unwrap().live().into_iter().filter(|check| check.result.is_err());
                    names.lock().extend(checks.map(|check| check.name));
                }
            });
            let spawned = Arc::new(SpawnedHandler::new("web", "watches = Pod".into(), handler));
            let mut view = manager.view();
            view.spawned_handlers.push(spawned.clone());
            assert!(health.set(Health::new(view, manager.metrics().clone())).is_ok());
            let sender = spawned.sender();
            for _ in 0..HANDLED_AT_ONCE {
                sender(&Change::Added(pod.clone()), Origin::Live);
            }
            drop(sender);
            spawned.run(|| {}).await;
            assert_eq!(failed.lock().first().map(String::as_str), is_stuck.then_some("handler-web-1"), "{seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_reconcile_is_reported_then_fails_liveness() {
        let (queue, runs) = (WorkQueue::new(QueueConfig::default()), TimedRuns::default());
        let (timeout, web) = (Some(Duration::from_secs(30)), ObjectKey::new(Some("default"), "web"));
        queue.add(web.clone());
        let _web = queue.get().await.unwrap();
        let _run = runs.start(&web);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(describe_longest(&queue, &runs, timeout), Ok(String::new()));
        tokio::time::advance(Duration::from_secs(1)).await;
        let warning = "default/web has been reconciled for 60 s";
        assert_eq!(describe_longest(&queue, &runs, None), Ok(warning.into()));
        assert_eq!(describe_longest(&queue, &runs, timeout), Ok(warning.into()), "it may just have ended");

        queue.add(ObjectKey::new(Some("default"), "api"));
        let _api = queue.get().await.unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        let warning = "default/web has been reconciled for 120 s, and 1 more for a minute or longer";
        assert_eq!(describe_longest(&queue, &runs, None), Ok(warning.into()));
        let failed = format!("{warning}, although its timeout is 30s: it blocks its thread");
        assert_eq!(describe_longest(&queue, &runs, timeout), Err(failed));
    }

    #[tokio::test(start_paused = true)]
    async fn time_before_the_function_passes_liveness() {
        let (queue, runs) = (WorkQueue::new(QueueConfig::default()), TimedRuns::default());
        let (timeout, web) = (Some(Duration::from_secs(30)), ObjectKey::new(Some("default"), "web"));
        queue.add(web.clone());
        let _web = queue.get().await.unwrap();
        tokio::time::advance(Duration::from_secs(600)).await;
        let listing = Ok("default/web has been reconciled for 600 s".to_owned());
        assert_eq!(describe_longest(&queue, &runs, timeout), listing, "a restart would not help");
        let run = runs.start(&web);
        tokio::time::advance(Duration::from_secs(89)).await;
        assert!(describe_longest(&queue, &runs, timeout).is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        let failed = "default/web has been reconciled for 90 s, although its timeout is 30s: it blocks its thread";
        assert_eq!(describe_longest(&queue, &runs, timeout), Err(failed.into()));
        drop(run);
        assert!(describe_longest(&queue, &runs, timeout).is_ok());
    }
}
