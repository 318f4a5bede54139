//! Objects that the primary's type can't read: they get an Event, and their finalizer can be resolved.

use std::sync::atomic::{AtomicBool, Ordering};

use kctl::{
    k8s::{
        api::events::v1::Event,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps},
    },
    kube::{
        Api, CustomResourceExt,
        api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use kctl_runtime::manager::metrics::Format;
use kctl_tests::Fault;
use tokio::task::JoinSet;

use crate::world::{Log, World, advance_seconds, app};

const FINALIZER: &str = "loop.example.com/gauge";

/// On the server its level may be anything: another program has changed the CRD.
#[resource(group = "example.com", version = "v1", kind = "Gauge", namespaced)]
struct GaugeSpec {
    level: u8,
}

/// Cleans up objects that it can read.
#[controller(of = Gauge, finalizer = "loop.example.com/gauge")]
struct Gauges {
    log: Log,
}

impl Reconcile for Gauges {
    async fn reconcile(&self, gauge: Arc<Gauge>, _: Context<Self>) -> Result<Action> {
        self.log.add(format!("reconcile {}", gauge.spec.level));
        Ok(Action::await_change())
    }
}

impl Finalize for Gauges {
    async fn finalize(&self, gauge: Arc<Gauge>, _: Context<Self>) -> Result<()> {
        assert!(gauge.metadata.deletion_timestamp.is_some(), "the metadata is current");
        self.log.add(format!("finalize {}", gauge.spec.level));
        Ok(())
    }
}

/// Cleans up unreadable objects as well.
#[controller(of = Gauge, finalizer = "loop.example.com/gauge")]
struct Thorough {
    log: Log,
}

impl Reconcile for Thorough {
    async fn reconcile(&self, _: Arc<Gauge>, _: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Thorough {
    async fn finalize(&self, gauge: Arc<Gauge>, _: Context<Self>) -> Result<()> {
        self.log.add(format!("finalize {}", gauge.spec.level));
        Ok(())
    }

    async fn finalize_unreadable(&self, gauge: UnreadableObject, _: Context<Self>) -> Result<()> {
        assert!(gauge.error.contains("300"), "{}", gauge.error);
        self.log.add(format!("finalize_unreadable {}", gauge.json["spec"]["level"]));
        Ok(())
    }
}

/// Never manages to clean up an unreadable object.
#[controller(of = Gauge, finalizer = "loop.example.com/gauge")]
struct Stubborn {
    log: Log,
}

impl Reconcile for Stubborn {
    async fn reconcile(&self, _: Arc<Gauge>, _: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Stubborn {
    async fn finalize(&self, _: Arc<Gauge>, _: Context<Self>) -> Result<()> {
        Ok(())
    }

    async fn finalize_unreadable(&self, _: UnreadableObject, _: Context<Self>) -> Result<()> {
        self.log.add("try");
        Err("the external service is down").retry_after(Duration::from_secs(5))
    }
}

async fn install(world: &World) {
    let mut definition = Gauge::crd();
    let anything = JSONSchemaProps { x_kubernetes_preserve_unknown_fields: Some(true), ..JSONSchemaProps::default() };
    let schema = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.properties.as_mut().unwrap().insert("spec".into(), anything);
    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    advance_seconds(1).await;
}

fn gauges(world: &World) -> Api<DynamicObject> {
    Api::default_namespaced_with(world.client.clone(), &ApiResource::erase::<Gauge>(&()))
}

async fn create(world: &World, level: i32, finalizers: &[&str]) {
    let gauge = kctl::json!({
        "apiVersion": "example.com/v1", "kind": "Gauge",
        "metadata": { "name": "a", "finalizers": finalizers }, "spec": { "level": level },
    });
    let gauge: DynamicObject = serde_json::from_value(gauge).unwrap();
    gauges(world).create(&PostParams::default(), &gauge).await.unwrap();
}

async fn set_level(world: &World, level: i32) {
    let patch = Patch::Merge(kctl::json!({ "spec": { "level": level } }));
    gauges(world).patch("a", &PatchParams::default(), &patch).await.unwrap();
}

async fn delete(world: &World) {
    gauges(world).delete("a", &DeleteParams::default()).await.unwrap();
    advance_seconds(60).await;
}

async fn gauge_exists(world: &World) -> bool {
    gauges(world).get_opt("a").await.unwrap().is_some()
}

/// Returns the reasons and notes of all Events of type `Warning`.
async fn warnings(world: &World) -> Vec<(String, String)> {
    let events = Api::<Event>::default_namespaced(world.client.clone()).list(&ListParams::default()).await.unwrap();
    let warnings = events.items.into_iter().filter(|event| event.type_.as_deref() == Some("Warning"));
    warnings.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

#[tokio::test(start_paused = true)]
async fn unreadable_object_gets_one_event_for_each_state() {
    let (world, log) = (World::new(), Log::default());
    install(&world).await;
    create(&world, 300, &[]).await;
    let logged = log.clone();
    let gauges = app().controller_with(move |_| std::future::ready(Ok(Gauges { log: logged.clone() })));
    let manager = gauges.manager(world.faults.client(&world.server)).await.unwrap();
    let metrics = manager.metrics().clone();
    let n_unreadable = || {
        let text = metrics.text(Format::Prometheus);
        let sample = r#"kctl_source_unreadable_objects{name="",group="example.com",version="v1",resource="gauges"} "#;
        text.lines().find_map(|line| line.strip_prefix(sample)).map(ToOwned::to_owned)
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run(std::future::pending()));
    advance_seconds(60).await;
    assert_eq!(n_unreadable().as_deref(), Some("1"));
    let warned = warnings(&world).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(warned[0].0, "Unreadable");
    assert!(warned[0].1.starts_with("can't be read as Gauge: invalid value: integer `300`, expected u8"), "{warned:?}");
    assert!(warned[0].1.ends_with("it is ignored until then"), "{warned:?}");
    set_level(&world, 3).await;
    advance_seconds(60).await;
    assert!(log.take().contains(&"reconcile 3".to_owned()));
    assert_eq!(n_unreadable().as_deref(), Some("0"));
    set_level(&world, 400).await;
    advance_seconds(60).await;
    let warned = warnings(&world).await;
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(warned.iter().any(|(_, note)| note.ends_with("its last readable state is used until then")), "{warned:?}");
}

#[tokio::test(start_paused = true)]
async fn deleted_unreadable_object_finalizes_last_readable_state() {
    let (mut world, log) = (World::new(), Log::default());
    install(&world).await;
    create(&world, 3, &[]).await;
    let logged = log.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Gauges { log: logged.clone() })))).await;
    advance_seconds(60).await;
    set_level(&world, 300).await;
    advance_seconds(60).await;
    log.take();
    delete(&world).await;
    assert_eq!(log.take(), ["finalize 3"]);
    assert!(!gauge_exists(&world).await);
}

#[tokio::test(start_paused = true)]
async fn never_readable_object_keeps_its_finalizer_until_corrected() {
    let (mut world, log) = (World::new(), Log::default());
    install(&world).await;
    create(&world, 300, &["example.com/other", FINALIZER]).await;
    let logged = log.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Gauges { log: logged.clone() })))).await;
    delete(&world).await;
    assert!(gauge_exists(&world).await && log.take().is_empty());
    let warned = warnings(&world).await;
    let note = warned.iter().find(|(reason, _)| reason == "ReconcileFailed").map(|(_, note)| note.as_str());
    let note = note.unwrap_or_else(|| panic!("{warned:?}"));
    assert!(note.contains("the finalizer loop.example.com/gauge is kept"), "{note}");
    let command = r#"kubectl patch gauges.example.com a -n default --type=merge -p '{"metadata":{"finalizers":["example.com/other"]}}'"#;
    assert!(note.ends_with(command), "{note}");
    set_level(&world, 3).await;
    advance_seconds(60).await;
    assert_eq!(log.take(), ["finalize 3"]);
    assert_eq!(gauges(&world).get("a").await.unwrap().finalizers(), ["example.com/other"]);
}

#[tokio::test(start_paused = true)]
async fn finalize_unreadable_cleans_up_what_was_never_readable() {
    let (mut world, log) = (World::new(), Log::default());
    install(&world).await;
    create(&world, 300, &[FINALIZER]).await;
    let logged = log.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Thorough { log: logged.clone() })))).await;
    delete(&world).await;
    assert_eq!(log.take(), ["finalize_unreadable 300"]);
    assert!(!gauge_exists(&world).await);
    assert!(warnings(&world).await.iter().all(|(reason, _)| reason == "Unreadable"));
}

#[tokio::test(start_paused = true)]
async fn failed_lists_keep_retrying_unreadable_objects() {
    let (mut world, log) = (World::new(), Log::default());
    install(&world).await;
    create(&world, 300, &[FINALIZER]).await;
    let logged = log.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Stubborn { log: logged.clone() })))).await;
    delete(&world).await;
    assert!(log.take().len() > 5, "it is tried every five seconds");
    world.faults.add(Fault::Reject(503), |request| request.reads("gauges"));
    world.faults.cut_watches();
    advance_seconds(20).await;
    world.faults.clear();
    advance_seconds(60).await;
    log.take();
    advance_seconds(60).await;
    assert!(log.take().len() > 5, "and still is");
    // A list that works forgets what it does not report.
    let is_rejected = AtomicBool::new(false);
    world.faults.add(Fault::Reject(410), move |request| {
        request.is_watch && request.reads("gauges") && !is_rejected.swap(true, Ordering::Relaxed)
    });
    world.faults.cut_watches();
    let patch = Patch::Merge(kctl::json!({ "metadata": { "finalizers": null } }));
    gauges(&world).patch("a", &PatchParams::default(), &patch).await.unwrap();
    advance_seconds(60).await;
    log.take();
    advance_seconds(60).await;
    assert_eq!(log.take(), Vec::<String>::new());
}
