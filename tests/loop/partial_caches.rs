//! Relations that read only a part of their kind: requests, cache contents, queued keys, and shared informers.

use kctl::{
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, CustomResourceExt,
        api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
        core::PartialObjectMetaExt,
    },
    object::Stored,
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::manifest::{self, RbacOptions};
use kctl_tests::{Fault, RequestSummary};
use parking_lot::Mutex;

use crate::{
    watch::source_of,
    world::{Log, With, World, advance_seconds, app, pod},
};

static COUNTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records all Pods by their metadata.
#[controller(reads = Pod(metadata, delete))]
async fn counter(config: Arc<ConfigMap>, cx: Context<counter>) -> Result<Action> {
    let pods = cx.store::<PartialObjectMeta<Pod>>();
    for pod in pods.iter() {
        let owner = pod.annotations().get("owner").cloned().unwrap_or_default();
        COUNTED.lock().push(format!("{} {} {owner}", config.name_any(), pod.name_any()));
        if pod.labels().contains_key("delete") {
            cx.objects::<PartialObjectMeta<Pod>>().delete(&pod).await?;
        }
    }
    Ok(Action::await_change())
}

/// Is queued by Pods of the same name.
#[controller(of = Secret, watches = Pod(metadata, map = of_pod))]
struct Follower {
    log: Log,
}

fn of_pod(pod: &PartialObjectMeta<Pod>, _secrets: &Store<Secret>) -> Vec<Key<Secret>> {
    vec![Key::namespaced("default", &pod.name_any())]
}

impl Reconcile for Follower {
    async fn reconcile(&self, secret: Arc<Secret>, _cx: Context<Self>) -> Result<Action> {
        self.log.add(secret.name_any());
        Ok(Action::await_change())
    }
}

/// Owns Pods that it reads as metadata only.
#[controller(of = Service, owns = Pod(metadata))]
struct Keeper {
    log: Log,
}

impl Reconcile for Keeper {
    async fn reconcile(&self, service: Arc<Service>, cx: Context<Self>) -> Result<Action> {
        let pods = cx.owned::<PartialObjectMeta<Pod>>();
        self.log.add(format!("{} of {}", pods.len(), service.name_any()));
        if pods.is_empty() {
            let applied = pods.apply(pod("kept")).await?;
            assert_eq!(applied.owner_references().len(), 1);
            assert_eq!(cx.owned::<PartialObjectMeta<Pod>>().len(), 1, "an own write is read at once");
        }
        for extra in pods.iter().skip(1) {
            pods.delete(&extra).await?;
        }
        Ok(Action::await_change())
    }
}

kctl::permissions_test!(fn role_of_owned_metadata_is_what_the_types_grant: Keeper; owns PartialObjectMeta<Pod>);

/// Logs the `Accept` forms in which Pods are listed and watched.
fn note_forms(world: &World) -> Log {
    let log = Log::default();
    let forms = log.clone();
    world.faults.add(Fault::Break, move |request: &RequestSummary| {
        if request.reads("pods") {
            let form = request.accept.split_once(";g=").map_or("whole", |(form, _)| form);
            forms.add(format!("{} {form}", if request.is_watch { "watch" } else { "list" }));
        }
        false
    });
    log
}

/// Returns the contents of the cache of Pods, as JSON.
fn cached_pods(view: &kctl::manager::View) -> Vec<String> {
    let mut objects: Vec<Arc<Stored>> = source_of(view, "pods").store().all();
    objects.sort_by(|a, b| a.key().cmp(b.key()));
    objects.iter().map(|object| object.json().into_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_requested_cached_and_read() {
    let mut world = World::new();
    let mut owned = pod("a");
    owned.metadata.annotations = Some([("owner".to_owned(), "me".to_owned())].into());
    world.pods().create(&PostParams::default(), &owned).await.unwrap();
    world.set("config", "1").await;
    let forms = note_forms(&world);
    let view = world.run(app().controller::<counter>()).await;
    advance_seconds(1).await;
    assert_eq!(std::mem::take(&mut *COUNTED.lock()), ["config a me"]);
    assert_eq!(
        forms.take(),
        ["list application/json;as=PartialObjectMetadataList", "watch application/json;as=PartialObjectMetadata"]
    );
    let mut gone = pod("b");
    gone.metadata.labels = Some([("delete".to_owned(), "yes".to_owned())].into());
    world.pods().create(&PostParams::default(), &gone).await.unwrap();
    advance_seconds(1).await;
    let cached_now = cached_pods(&view);
    assert_eq!(cached_now.len(), 2);
    for json in &cached_now {
        assert!(json.contains("\"metadata\"") && !json.contains("spec") && !json.contains("managedFields"), "{json}");
        // The first object came in a list and the second in an event. The server sends both as `PartialObjectMetadata`.
        assert!(!json.contains("\"kind\"") && !json.contains("PartialObjectMetadata"), "{json}");
    }
    world.set("config", "2").await;
    advance_seconds(60).await;
    assert_eq!(std::mem::take(&mut *COUNTED.lock()), ["config a me", "config b "]);
    assert_eq!(cached_pods(&view).len(), 1, "what was deleted by its metadata is gone");
    assert_eq!(world.pod_names().await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn change_outside_of_metadata_queues_no_key() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_secret("a").await;
    world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
    let follower = log.clone();
    let app = app().controller_with(move |_env| std::future::ready(Ok(Follower { log: follower.clone() })));
    let view = world.run(app).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a"]);
    let revision = source_of(&view, "pods").store().revision();
    for n in 0..3 {
        let status = Patch::Merge(kctl::json!({ "status": { "message": n.to_string() } }));
        world.pods().patch_status("a", &PatchParams::default(), &status).await.unwrap();
        advance_seconds(1).await;
    }
    assert!(log.take().is_empty(), "a status is not in the metadata");
    assert!(source_of(&view, "pods").store().revision() > revision, "the cache has come as far as the server");
    let color = Patch::Merge(kctl::json!({ "metadata": { "annotations": { "color": "red" } } }));
    world.pods().patch("a", &PatchParams::default(), &color).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_only_owned_pods_are_applied_and_deleted() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_service("web").await;
    let keeper = log.clone();
    let view =
        world.run(app().controller_with(move |_env| std::future::ready(Ok(Keeper { log: keeper.clone() })))).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["0 of web", "1 of web"]);
    let kept = world.pods().get("kept").await.unwrap();
    assert_eq!(kept.spec.unwrap().containers.len(), 1, "the whole object was applied");
    assert!(!cached_pods(&view)[0].contains("containers"), "its own writes are cached as all others are");
    let mut extra = pod("more");
    extra.metadata.owner_references = kept.metadata.owner_references;
    world.pods().create(&PostParams::default(), &extra).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(world.pod_names().await, ["kept"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_and_full_readers_share_one_watch() {
    for first in ["metadata", "whole"] {
        let (mut world, log) = (World::new(), Log::default());
        world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
        world.create_secret("a").await;
        world.set("config", "1").await;
        let follower = log.clone();
        let slim =
            |app: App| app.controller_with(move |_env| std::future::ready(Ok(Follower { log: follower.clone() })));
        let seen = log.clone();
        let whole = |app: App| {
            app.configs(move |_, cx| {
                let n_containers = cx.owned::<Pod>().len();
                seen.add(format!("{n_containers} owned"));
                std::future::ready(Ok(Action::await_change()))
            })
        };
        let app = if first == "metadata" { whole(slim(app())) } else { slim(whole(app())) };
        let view = world.run(app).await;
        advance_seconds(1).await;
        let mut lines = log.take();
        lines.sort();
        assert_eq!(lines, ["0 owned", "a"], "{first} first");
        assert!(cached_pods(&view)[0].contains("containers"), "{first} first");
        assert_eq!((world.n_requests("list", "pods"), world.n_requests("watch", "pods")), (1, 1), "{first} first");
    }
}

#[tokio::test(start_paused = true)]
async fn runtime_watch_of_full_objects_bypasses_metadata_cache() {
    let mut world = World::new();
    world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
    let log = Log::default();
    let follower = log.clone();
    let app = app().controller_with(move |_env| std::future::ready(Ok(Follower { log: follower.clone() })));
    let watches = world.run_with_watches(app).await;
    advance_seconds(1).await;
    let mut pods = watches.watch::<Pod>(WatchConfig::of::<Pod>()).await.unwrap();
    let Some(Change::Added(seen)) = pods.next().await else { panic!("the pod is there") };
    assert_eq!(seen.spec.as_ref().unwrap().containers.len(), 1);
    assert_eq!(world.n_requests("watch", "pods"), 2);
    assert!(!cached_pods(world.view())[0].contains("containers"), "the controller's cache is as small as it was");
}

#[tokio::test(start_paused = true)]
async fn metadata_and_full_readers_have_equal_roles() {
    #[controller(reads = Pod(delete))]
    async fn whole(_config: Arc<ConfigMap>, _cx: Context<whole>) -> Result<Action> {
        Ok(Action::await_change())
    }
    let rules = |app: App| {
        let manifests = manifest::rbac(&app.specs(), &RbacOptions::default()).unwrap();
        let roles = manifests.into_iter().filter(|manifest| manifest.object["kind"] == "ClusterRole");
        roles.map(|role| role.object["rules"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rules(app().controller::<counter>()), rules(app().controller::<whole>()));
}

/// The node and the team of a pod.
#[view(of = Pod)]
#[derive(Debug)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
    #[view(status.pod_ip)]
    ip: Option<String>,
    #[view(metadata.annotations["team"])]
    team: Option<String>,
}

/// Another reader of pods.
#[view(of = Pod)]
struct Timed {
    #[view(spec.termination_grace_period_seconds)]
    grace: Option<i64>,
}

fn by_node(pod: &Placed) -> Vec<String> {
    pod.node.iter().cloned().collect()
}

/// Is queued by Pods of its team, and logs all Pods on the node `n`.
#[controller(of = Secret, watches = Pod(as = Placed, map = of_team, when = has_team, index = by_node, patch))]
struct Census {
    log: Log,
}

fn of_team(pod: &Placed, _secrets: &Store<Secret>) -> Vec<Key<Secret>> {
    pod.team.iter().map(|team| Key::namespaced("default", team)).collect()
}

fn has_team(change: &Change<Placed>) -> bool {
    change.latest().team.is_some()
}

impl Reconcile for Census {
    async fn reconcile(&self, secret: Arc<Secret>, cx: Context<Self>) -> Result<Action> {
        for pod in cx.store::<Placed>().by_index(by_node, "n") {
            let ip = pod.ip.clone().unwrap_or_default();
            self.log.add(format!("{}: {} {ip}", secret.name_any(), pod.name_any()));
            if !pod.labels().contains_key("counted") {
                let counted = kctl::json!({ "metadata": { "labels": { "counted": "yes" } } });
                let of: PartialObjectMeta<Pod> = pod.metadata.clone().into_request_partial();
                let patched = cx.objects::<PartialObjectMeta<Pod>>().patch(&of, counted).await?;
                assert!(patched.labels().contains_key("counted"));
                assert!(
                    cx.store::<Placed>()
                        .get(&Key::from_object(&*pod))
                        .is_some_and(|pod| pod.labels().contains_key("counted"))
                );
            }
        }
        Ok(Action::await_change())
    }
}

/// Reads the same Pods with another view.
#[controller(of = Service, reads = Pod(as = Timed))]
struct Timer {
    log: Log,
}

impl Reconcile for Timer {
    async fn reconcile(&self, service: Arc<Service>, cx: Context<Self>) -> Result<Action> {
        let graces = cx.store::<Timed>().iter().map(|pod| pod.grace.unwrap_or_default()).sum::<i64>();
        self.log.add(format!("{}: {graces}", service.name_any()));
        Ok(Action::await_change())
    }
}

fn census(log: &Log) -> impl FnOnce(App) -> App {
    let log = log.clone();
    move |app| app.controller_with(move |_env| std::future::ready(Ok(Census { log: log.clone() })))
}

fn timer(log: &Log) -> impl FnOnce(App) -> App {
    let log = log.clone();
    move |app| app.controller_with(move |_env| std::future::ready(Ok(Timer { log: log.clone() })))
}

/// Creates a Pod of the team `a` on the node `n`.
async fn create_placed(world: &World, name: &str) {
    let mut placed = pod(name);
    placed.metadata.annotations = Some([("team".to_owned(), "a".to_owned())].into());
    placed.spec.as_mut().unwrap().node_name = Some("n".into());
    world.pods().create(&PostParams::default(), &placed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn view_keeps_its_fields_everywhere_and_nothing_else() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_secret("a").await;
    create_placed(&world, "x").await;
    let view = world.run(census(&log)(app())).await;
    advance_seconds(1).await;
    assert_eq!(log.take()[0], "a: x ");
    let status = Patch::Merge(kctl::json!({ "status": { "podIP": "10.0.0.1", "phase": "Running" } }));
    world.pods().patch_status("x", &PatchParams::default(), &status).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take().last().map(String::as_str), Some("a: x 10.0.0.1"));
    let json = cached_pods(&view).remove(0);
    assert!(
        json.ends_with(r#""annotations":{"team":"a"}},"spec":{"nodeName":"n"},"status":{"podIP":"10.0.0.1"}}"#),
        "{json}"
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeat_outside_of_a_view_queues_no_key() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_secret("a").await;
    create_placed(&world, "x").await;
    world.run(census(&log)(app())).await;
    advance_seconds(1).await;
    log.take();
    for n in 0..5 {
        let status = Patch::Merge(kctl::json!({ "status": { "message": n.to_string() } }));
        world.pods().patch_status("x", &PatchParams::default(), &status).await.unwrap();
        advance_seconds(1).await;
    }
    assert!(log.take().is_empty(), "the view has no message");
    let status = Patch::Merge(kctl::json!({ "status": { "podIP": "10.0.0.2" } }));
    world.pods().patch_status("x", &PatchParams::default(), &status).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: x 10.0.0.2"]);
}

#[tokio::test(start_paused = true)]
async fn two_views_of_a_kind_share_one_watch() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_service("timer").await;
    world.create_secret("a").await;
    create_placed(&world, "x").await;
    let view = world.run(timer(&log)(census(&log)(app()))).await;
    advance_seconds(1).await;
    let mut lines = log.take();
    lines.sort();
    lines.dedup();
    assert_eq!(lines, ["a: x ", "timer: 30"], "the API server gives a pod 30 s of grace");
    assert_eq!((world.n_requests("list", "pods"), world.n_requests("watch", "pods")), (1, 1));
    let json = cached_pods(&view).remove(0);
    assert!(
        json.ends_with(r#""spec":{"nodeName":"n","terminationGracePeriodSeconds":30}}"#)
            || json.ends_with(r#""spec":{"terminationGracePeriodSeconds":30,"nodeName":"n"}}"#),
        "{json}"
    );
}

#[tokio::test(start_paused = true)]
async fn view_shares_cache_of_full_reader() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_service("timer").await;
    create_placed(&world, "x").await;
    let view = world.run(timer(&log)(app()).secrets(|_, _| async { Ok(Action::await_change()) })).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["timer: 30"]);
    assert!(cached_pods(&view)[0].contains("containers"));
    assert_eq!(world.n_requests("watch", "pods"), 1);
}

/// The size of a widget, which is required.
#[view(of = Widget)]
struct Sized {
    #[view(spec.size)]
    size: i32,
}

/// A kind with objects that are older than some of its fields.
#[resource(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: i32,
    color: Option<String>,
}

static SIZES: Mutex<Vec<i32>> = Mutex::new(Vec::new());

#[controller(reads = Widget(as = Sized))]
async fn sizes(_config: Arc<ConfigMap>, cx: Context<sizes>) -> Result<Action> {
    SIZES.lock().extend(cx.store::<Sized>().iter().map(|widget| widget.size));
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn object_missing_required_field_is_skipped_and_counted() {
    let mut world = World::new();
    let mut definition = kctl::json!(Widget::crd());
    let schema = kctl::json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    definition["spec"]["versions"][0]["schema"] = schema;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    definitions.create(&PostParams::default(), &kctl::from_json(definition).unwrap()).await.unwrap();
    advance_seconds(5).await;
    let widgets =
        Api::<DynamicObject>::default_namespaced_with(world.client.clone(), &ApiResource::erase::<Widget>(&()));
    for (name, spec) in [("a", kctl::json!({ "size": 3 })), ("b", kctl::json!({ "length": 4 }))] {
        let widget = kctl::json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name }, "spec": spec,
        });
        widgets.create(&PostParams::default(), &kctl::from_json(widget).unwrap()).await.unwrap();
    }
    world.set("config", "1").await;
    let view = world.run(app().controller::<sizes>()).await;
    advance_seconds(1).await;
    assert_eq!(*SIZES.lock(), [3]);
    assert_eq!(source_of(&view, "widgets").health().undecodable, 1);
}
