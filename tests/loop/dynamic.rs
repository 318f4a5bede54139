//! Watches that are opened at run time: they are shared and counted, late users get all objects, and the role limits
//! them.

use futures::{StreamExt, future::Either};
use kctl::{
    k8s::api::rbac::v1::PolicyRule,
    kube::core::{DynamicObject, GroupVersionKind, PartialObjectMeta},
    object::{Kind, Object},
    prelude::*,
    watches::{Projection, Watch, WatchConfig, WatchError, Watches},
};
use kctl_runtime::watches::CHANGES_WAITING_MAX;
use parking_lot::Mutex;

use crate::world::{Log, With, World, advance_seconds, app};

/// Returns an app whose controller only watches `ConfigMap`s and Pods.
fn idle() -> App {
    app().configs(|_config, _cx| async { Ok(Action::await_change()) })
}

fn secrets() -> WatchConfig {
    WatchConfig::of::<Secret>()
}

/// Returns all pending changes, as `+name`, `~name` and `-name`.
async fn take_changes<T: Projection>(watch: &mut Watch<T>, name_of: impl Fn(&T) -> String) -> String {
    advance_seconds(1).await;
    let mut seen = Vec::new();
    while watch.waiting() > 0 {
        seen.push(match watch.next().await.unwrap() {
            Change::Added(new) => format!("+{}", name_of(&new)),
            Change::Updated { new, .. } => format!("~{}", name_of(&new)),
            Change::Deleted { last } => format!("-{}", name_of(&last)),
        });
    }
    seen.join(" ")
}

fn name<K: Object>(object: &K) -> String {
    object.name_any()
}

fn name_of_any(object: &DynamicObject) -> String {
    object.name_any()
}

async fn delete_secret(world: &World, name: &str) {
    let secrets = kctl::kube::Api::<Secret>::default_namespaced(world.client.clone());
    secrets.delete(name, &kctl::kube::api::DeleteParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn equal_watches_of_any_type_share_one_list() {
    let mut world = World::new();
    world.create_secret("a").await;
    let watches = world.run_with_watches(idle()).await;
    let mut typed = watches.watch::<Secret>(secrets()).await.unwrap();
    let mut meta = watches.watch::<PartialObjectMeta<Secret>>(secrets()).await.unwrap();
    let kind = watches.kind(&GroupVersionKind::gvk("", "v1", "Secret")).await.unwrap();
    let mut untyped = watches.watch::<DynamicObject>(WatchConfig::new(kind)).await.unwrap();
    for (kind, namespaced) in [("Secret", true), ("Node", false)] {
        assert_eq!(watches.is_namespaced(&GroupVersionKind::gvk("", "v1", kind)).await.unwrap(), namespaced, "{kind}");
    }
    world.create_secret("b").await;
    assert_eq!(take_changes(&mut typed, name).await, "+a +b");
    assert_eq!(take_changes(&mut meta, name).await, "+a +b");
    assert_eq!(take_changes(&mut untyped, name_of_any).await, "+a +b");
    assert_eq!((world.n_requests("list", "secrets"), world.n_requests("watch", "secrets")), (1, 1));
    assert_eq!(users(&watches, "secrets"), Some(3));
}

/// Returns the number of users of a resource's watch.
fn users(watches: &Watches, plural: &str) -> Option<usize> {
    watches.open().into_iter().find(|(identity, _)| identity.kind.plural == plural).map(|(_, n_users)| n_users)
}

#[tokio::test(start_paused = true)]
async fn runtime_watch_of_declared_kind_shares_controller_cache() {
    let mut world = World::new();
    world.set("a", "1").await;
    let watches = world.run_with_watches(idle()).await;
    let mut configs = watches.watch::<ConfigMap>(WatchConfig::of::<ConfigMap>()).await.unwrap();
    assert_eq!(take_changes(&mut configs, name).await, "+a");
    drop(configs);
    advance_seconds(1).await;
    assert_eq!(users(&watches, "configmaps"), Some(1), "the controller continues");
    assert_eq!((world.n_requests("list", "configmaps"), world.n_requests("watch", "configmaps")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn late_subscriber_gets_objects_then_each_change_once() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.create_secret(name).await;
    }
    let watches = world.run_with_watches(idle()).await;
    let mut early = watches.watch::<Secret>(secrets()).await.unwrap();
    assert_eq!(take_changes(&mut early, name).await, "+a +b");
    delete_secret(&world, "a").await;
    world.create_secret("c").await;
    let mut late = watches.watch::<Secret>(secrets()).await.unwrap();
    world.create_secret("d").await;
    delete_secret(&world, "b").await;
    assert_eq!(take_changes(&mut early, name).await, "-a +c +d -b");
    let seen = take_changes(&mut late, name).await;
    assert!(["+b +c +d -b", "+a +b -a +c +d -b"].contains(&seen.as_str()), "{seen}");
    assert_eq!(world.n_requests("list", "secrets"), 1);
}

#[tokio::test(start_paused = true)]
async fn watch_stops_with_last_subscriber_then_relists() {
    let mut world = World::new();
    world.create_secret("a").await;
    let watches = world.run_with_watches(idle()).await;
    let first = watches.watch::<Secret>(secrets()).await.unwrap();
    let second = watches.watch::<Secret>(secrets()).await.unwrap();
    assert!(second.wait_until_synced().await);
    drop(first);
    assert_eq!(users(&watches, "secrets"), Some(1));
    drop(second);
    assert_eq!(users(&watches, "secrets"), None);
    advance_seconds(1).await;
    delete_secret(&world, "a").await;
    world.create_secret("b").await;
    advance_seconds(3600).await;
    assert_eq!(world.n_requests("watch", "secrets"), 1, "no informer watches a kind without users");
    let mut again = watches.watch::<Secret>(secrets()).await.unwrap();
    assert_eq!(take_changes(&mut again, name).await, "+b");
    assert_eq!(again.objects().len(), 1);
    assert_eq!(world.n_requests("list", "secrets"), 2);
}

#[tokio::test(start_paused = true)]
async fn dropped_watch_gets_nothing_and_others_continue() {
    let mut world = World::new();
    let watches = world.run_with_watches(idle()).await;
    let mut stays = watches.watch::<Secret>(secrets()).await.unwrap();
    let goes = watches.watch::<Secret>(secrets()).await.unwrap();
    world.create_secret("a").await;
    advance_seconds(1).await;
    assert_eq!(goes.waiting(), 1);
    drop(goes);
    world.create_secret("b").await;
    assert_eq!(take_changes(&mut stays, name).await, "+a +b");
}

#[tokio::test(start_paused = true)]
async fn slow_watcher_delays_no_other_and_loses_nothing() {
    let mut world = World::new();
    let watches = world.run_with_watches(idle()).await;
    let mut slow = watches.watch::<ConfigMap>(WatchConfig::of::<ConfigMap>()).await.unwrap();
    let mut quick = watches.watch::<ConfigMap>(WatchConfig::of::<ConfigMap>()).await.unwrap();
    let n_changes = CHANGES_WAITING_MAX + 100;
    let mut n_seen = 0;
    for version in 0..n_changes {
        world.set("a", &version.to_string()).await;
        let Either::Left(_) = futures::future::select(Box::pin(quick.next()), Box::pin(advance_seconds(1))).await
        else {
            panic!("change {version} is late")
        };
        n_seen += 1;
    }
    assert_eq!(n_seen, n_changes, "who keeps up sees each change");
    assert_eq!(slow.waiting(), CHANGES_WAITING_MAX + 1);
    let mut last = None;
    while slow.waiting() > 0 {
        last = slow.next().await;
    }
    let Some(Change::Updated { old, new }) = last else { panic!("{last:?}") };
    assert_eq!(crate::world::text(&old), (CHANGES_WAITING_MAX - 1).to_string(), "from what was seen last");
    assert_eq!(crate::world::text(&new), (n_changes - 1).to_string(), "to the newest");
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_their_manager() {
    let mut world = World::new();
    let watches = world.run_with_watches(idle()).await;
    let mut secrets_seen = watches.watch::<Secret>(secrets()).await.unwrap();
    advance_seconds(1).await;
    world.stop().await;
    assert!(secrets_seen.next().await.is_none());
    assert!(matches!(watches.watch::<Secret>(secrets()).await, Err(WatchError::Closed)));
    let n_requests = world.n_requests("watch", "secrets");
    advance_seconds(3600).await;
    assert_eq!(world.n_requests("watch", "secrets"), n_requests);
}

#[tokio::test(start_paused = true)]
async fn watch_rejects_wrong_type_unknown_kind_and_cluster() {
    let mut world = World::new();
    let watches = world.run_with_watches(idle()).await;
    let error = watches.watch::<Pod>(secrets()).await.err().unwrap().to_string();
    assert!(error.starts_with("objects of Secret cannot be read as k8s_openapi::"), "{error}");
    for (group, version, kind) in [("", "v1", "Sekret"), ("example.com", "v1", "Widget"), ("", "v1", "Eviction")] {
        let error = watches.kind(&GroupVersionKind::gvk(group, version, kind)).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("the API server has no kind {kind} in ")), "{error}");
    }
    let error = watches.watch::<Pod>(WatchConfig::of::<Pod>().on("edge")).await.err().unwrap().to_string();
    assert!(error.starts_with("there is no cluster `edge`"), "{error}");
}

fn may_read_leases() -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec!["coordination.k8s.io".into()]),
        resources: Some(vec!["leases".into()]),
        verbs: vec!["list".into(), "watch".into()],
        ..PolicyRule::default()
    }
}

/// Receives `Watches` when it is created.
#[controller(of = Service, reads = ConfigMap, rbac(may_read_leases()))]
struct Curious {
    _watches: Watches,
}

impl Reconcile for Curious {
    async fn reconcile(&self, _service: Arc<Service>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn runtime_watch_requires_declared_kind_or_rbac_rule() {
    let mut world = World::new();
    let given = Arc::new(Mutex::new(None));
    let app = app().controller_with({
        let given = given.clone();
        move |env| {
            *given.lock() = Some(env.watches.clone());
            async { Ok(Curious { _watches: env.watches }) }
        }
    });
    world.run(app).await;
    let watches = given.lock().clone().unwrap();
    let leases = Kind {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        kind: "Lease".into(),
        plural: "leases".into(),
    };
    for kind in [Kind::of::<Service>(), Kind::of::<ConfigMap>(), leases.clone()] {
        watches.watch::<DynamicObject>(WatchConfig::new(kind.clone())).await.unwrap();
        watches.watch::<DynamicObject>(WatchConfig::new(kind).in_namespaces(["a"])).await.unwrap();
    }
    let cases = [
        (secrets(), "secrets in all namespaces"),
        (secrets().in_namespaces(["a"]), "secrets in namespace a"),
        (WatchConfig::of::<Deployment>(), "deployments.apps in all namespaces"),
    ];
    for (identity, what) in cases {
        let error = watches.watch::<DynamicObject>(identity).await.err().unwrap().to_string();
        let expected = format!(
            "controller `service` may not list {what}; add a rule with `list` and `watch` on it to its `rbac(…)`"
        );
        assert_eq!(error, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn watch_opened_before_the_start_gets_everything() {
    let world = World::new();
    world.set("a", "1").await;
    let manager = idle().manager(world.faults.client(&world.server)).await.unwrap();
    let mut configs = manager.watches().watch::<ConfigMap>(WatchConfig::of::<ConfigMap>()).await.unwrap();
    let mut seen = manager.watches().watch::<Secret>(secrets()).await.unwrap();
    advance_seconds(10).await;
    assert_eq!(world.server.requests().iter().filter(|request| request.verb == "list").count(), 0);
    let running = tokio::spawn(manager.run(std::future::pending()));
    world.create_secret("b").await;
    assert_eq!(
        (take_changes(&mut configs, name).await, take_changes(&mut seen, name).await),
        ("+a".into(), "+b".into())
    );
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn runtime_watch_changes_trigger_reconcile() {
    let mut world = World::new();
    world.create_service("web").await;
    let log = Log::default();
    let note = log.clone();
    let start = |env: kctl::app::Env| async { Ok(Curious { _watches: env.watches }) };
    let app = app()
        .configs(move |config, cx| {
            note.add(format!("{}: {}", config.name_any(), cx.reason()));
            async { Ok(Action::await_change()) }
        })
        .controller_with(start)
        .trigger_on::<crate::world::Configs, _, _>(|env| {
            let pods = async move { env.watches.watch::<DynamicObject>(WatchConfig::of::<Pod>()).await.unwrap() };
            let pods = futures::stream::once(pods).flatten();
            pods.map(|change| Key::namespaced("default", &change.latest().name_any()))
        });
    world.set("a", "1").await;
    world.run(app).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: initial list"]);
    world.pods().create(&kctl::kube::api::PostParams::default(), &crate::world::pod("a")).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: trigger"]);
}
