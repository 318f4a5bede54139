//! Namespaces that are added and removed while the program runs.

use kctl::{
    kube::{
        Api,
        api::{DeleteParams, PostParams},
    },
    watches::{WatchConfig, WatchError, Watches},
};
use parking_lot::Mutex;

use crate::world::{Log, World, advance_seconds, app, metadata_named, pod};
use kctl::prelude::*;

/// Creates a Pod for each `ConfigMap`, and logs how many Pods it sees.
#[controller(of = ConfigMap, owns = Pod, reads = Secret(create), namespaces = ["a"])]
struct Limited {
    log: Log,
    hold: Arc<Mutex<Option<Duration>>>,
}

impl Reconcile for Limited {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("{} has {}", cx.key(), cx.owned::<Pod>().len()));
        let hold = *self.hold.lock();
        if let Some(hold) = hold {
            tokio::time::sleep(hold).await;
        }
        if cx.owned::<Pod>().is_empty() {
            let made = cx.owned::<Pod>().create(pod(&config.name_any())).await;
            self.log.add(made.map_or_else(|error| error.to_string(), |pod| format!("made {}", pod.name_any())));
        }
        Ok(Action::await_change())
    }
}

struct Limits {
    world: World,
    log: Log,
    hold: Arc<Mutex<Option<Duration>>>,
    watches: Watches,
}

impl Limits {
    async fn new() -> Self {
        let (mut world, log, hold) = (World::new(), Log::default(), Arc::<Mutex<Option<Duration>>>::default());
        let namespaces = Api::<Namespace>::all(world.client.clone());
        for name in ["a", "b"] {
            namespaces
                .create(&PostParams::default(), &Namespace { metadata: metadata_named(name), ..Namespace::default() })
                .await
                .unwrap();
            create(&world, name).await;
        }
        let app = app().controller_with({
            let (log, hold) = (log.clone(), hold.clone());
            move |_env| std::future::ready(Ok(Limited { log: log.clone(), hold: hold.clone() }))
        });
        let watches = world.run_with_watches(app).await;
        advance_seconds(1).await;
        Self { world, log, hold, watches }
    }

    /// Returns the sorted log since the last call, without duplicates.
    async fn take_log(&self) -> Vec<String> {
        advance_seconds(2).await;
        let mut seen = self.log.take();
        seen.sort();
        seen.dedup();
        seen
    }
}

async fn create(world: &World, namespace: &str) {
    create_named(world, namespace, "web").await;
}

async fn create_named(world: &World, namespace: &str, name: &str) {
    let configs = Api::<ConfigMap>::namespaced(world.client.clone(), namespace);
    let config = ConfigMap { metadata: metadata_named(name), ..ConfigMap::default() };
    configs.create(&PostParams::default(), &config).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn added_namespace_is_reconciled_until_removed() {
    let limits = Limits::new().await;
    assert_eq!(limits.take_log().await, ["a/web has 0", "a/web has 1", "made web"]);
    limits.watches.add_namespace("b").await.unwrap();
    assert_eq!(limits.watches.namespaces(), ["a", "b"]);
    let seen = limits.take_log().await;
    assert!(seen.contains(&"b/web has 0".into()) && seen.contains(&"made web".into()), "{seen:?}");
    limits.watches.remove_namespace("a").await.unwrap();
    assert_eq!(limits.watches.namespaces(), ["b"]);
    assert_eq!(limits.take_log().await, Vec::<String>::new(), "what leaves the cache is not missed");
    let pods = Api::<Pod>::namespaced(limits.world.client.clone(), "a");
    assert!(pods.get("web").await.is_ok(), "it is still there");
    pods.delete("web", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(limits.take_log().await, Vec::<String>::new(), "and no reconcile runs");
    limits.watches.add_namespace("a").await.unwrap();
    let seen = limits.take_log().await;
    assert!(seen.contains(&"a/web has 0".into()) && seen.contains(&"made web".into()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn namespace_removed_and_readded_is_listed_again() {
    let limits = Limits::new().await;
    limits.watches.add_namespace("b").await.unwrap();
    limits.take_log().await;
    limits.watches.remove_namespace("b").await.unwrap();
    limits.watches.add_namespace("b").await.unwrap();
    assert_eq!(limits.take_log().await, ["b/web has 1"]);
    create_named(&limits.world, "b", "late").await;
    assert_eq!(limits.take_log().await, ["b/late has 0", "b/late has 1", "made late"], "it is watched");
}

#[tokio::test(start_paused = true)]
async fn added_namespace_fills_all_caches_before_reconcile() {
    let limits = Limits::new().await;
    limits.watches.add_namespace("b").await.unwrap();
    limits.take_log().await;
    limits.watches.remove_namespace("b").await.unwrap();
    limits.take_log().await;
    // The list of Pods arrives ten seconds after the list of ConfigMaps.
    limits.world.faults.add(kctl_tests::Fault::DelayResponse(Duration::from_secs(10)), |request| {
        request.reads("pods") && !request.is_watch
    });
    limits.watches.add_namespace("b").await.unwrap();
    assert_eq!(limits.take_log().await, Vec::<String>::new());
    advance_seconds(10).await;
    assert_eq!(limits.take_log().await, ["b/web has 1"], "it never seemed to have none");
}

#[tokio::test(start_paused = true)]
async fn reconcile_in_a_removed_namespace_writes_nothing() {
    let limits = Limits::new().await;
    limits.take_log().await;
    *limits.hold.lock() = Some(Duration::from_secs(5));
    limits.watches.add_namespace("b").await.unwrap();
    advance_seconds(2).await;
    assert_eq!(limits.log.take().last().map(String::as_str), Some("b/web has 0"));
    limits.watches.remove_namespace("b").await.unwrap();
    advance_seconds(10).await;
    let seen = limits.log.take();
    assert!(seen[0].starts_with("create Pod b/web: not sent, because the cache does not follow it now"), "{seen:?}");
    let pods = Api::<Pod>::namespaced(limits.world.client.clone(), "b");
    assert!(pods.get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_removed_namespace_leave_as_deletes() {
    let limits = Limits::new().await;
    let source = limits.world.view().sources().iter().find(|s| s.config().kind.plural == "configmaps").unwrap().clone();
    let log = Log::default();
    source.store().subscribe(crate::script::log_changes(&log)).await.wait_until_delivered().await;
    log.take();
    limits.watches.add_namespace("b").await.unwrap();
    advance_seconds(1).await;
    let added = log.take();
    assert!(added.len() == 1 && added[0].starts_with("initial +web@"), "{added:?}");
    limits.watches.remove_namespace("b").await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), [added[0].replace("initial +", "-")]);
    assert_eq!(source.namespaces(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn watch_survives_a_change_of_its_controllers_namespaces() {
    let limits = Limits::new().await;
    let mut configs =
        limits.watches.watch::<ConfigMap>(WatchConfig::of::<ConfigMap>().in_namespaces(["a"])).await.unwrap();
    assert!(matches!(configs.next().await, Some(Change::Added(_))));
    limits.watches.remove_namespace("a").await.unwrap();
    limits.watches.add_namespace("b").await.unwrap();
    advance_seconds(5).await;
    assert_eq!((configs.waiting(), configs.objects().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn cluster_wide_controller_rejects_namespace_changes() {
    let mut world = World::new();
    let app = crate::world::With::configs(app(), |_, _| async { Ok(Action::await_change()) });
    let watches = world.run_with_watches(app).await;
    assert!(matches!(watches.add_namespace("a").await, Err(WatchError::NotLimited)));
    assert!(matches!(watches.remove_namespace("a").await, Err(WatchError::NotLimited)));
    assert!(watches.namespaces().is_empty());
}

/// Copies the `ConfigMap`'s data to a Secret in another namespace, and logs whether the cache has that Secret.
#[controller(of = ConfigMap, name = "outward", reads = Secret(create), namespaces = ["a"])]
struct Outward {
    log: Log,
}

impl Reconcile for Outward {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let metadata = ObjectMeta { namespace: Some("b".into()), ..metadata_named("copy") };
        cx.objects::<Secret>().create(&Secret { metadata, ..Secret::default() }).await?;
        self.log.add(format!("{} known", cx.store::<Secret>().len()));
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn own_write_outside_the_namespaces_is_not_cached() {
    let (mut world, log) = (World::new(), Log::default());
    let namespaces = Api::<Namespace>::all(world.client.clone());
    for name in ["a", "b"] {
        let namespace = Namespace { metadata: metadata_named(name), ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    create(&world, "a").await;
    let start = {
        let log = log.clone();
        move |_env| std::future::ready(Ok(Outward { log: log.clone() }))
    };
    world.run(app().controller_with(start)).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["0 known"]);
    assert!(Api::<Secret>::namespaced(world.client.clone(), "b").get("copy").await.is_ok());
}
