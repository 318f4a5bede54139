//! Reads from a store: by key, by namespace and by index, and objects that can't be read.

use kctl::{
    key::ObjectKey,
    kube::{Api, Resource, api::PostParams, core::NamespaceResourceScope},
    object::{Kind, Object, Stored},
    prelude::*,
};
use kctl_runtime::store::{Delta, SharedStore};
use parking_lot::Mutex;
use tokio::task::{AbortHandle, yield_now};

use crate::{
    script::{event, list, object, watch},
    world::{World, advance_seconds, app},
};

/// Creates a store of Pods with a running writer.
fn pods() -> (Arc<SharedStore>, Store<Pod>, AbortHandle) {
    let shared = Arc::new(SharedStore::default());
    let writer = tokio::spawn(shared.clone().write());
    (shared.clone(), Store::new(shared), writer.abort_handle())
}

/// Returns a Pod with this value of the label `colors`.
fn colored_pod(namespace: &str, name: &str, version: u32, colors: &str) -> Arc<Stored> {
    let json = kctl::json!({ "metadata": {
        "namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"),
        "resourceVersion": version.to_string(), "labels": { "colors": colors },
    } });
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &json.to_string()).unwrap())
}

fn by_color(pod: &Pod) -> Vec<String> {
    let colors = pod.labels().get("colors").cloned().unwrap_or_default();
    assert_ne!(colors, "planted");
    colors.split('-').map(str::to_owned).collect()
}

fn by_namespace_and_color(pod: &Pod) -> Vec<String> {
    let namespace = pod.namespace().unwrap_or_default();
    by_color(pod).iter().map(|color| format!("{namespace}/{color}")).collect()
}

fn names(pods: impl Iterator<Item = Arc<Pod>>) -> Vec<String> {
    pods.map(|pod| pod.name_any()).collect()
}

async fn replace(shared: &SharedStore, objects: Vec<Arc<Stored>>, version: &str) {
    shared.push_and_wait(Delta::Replace(None, objects, version.into())).await;
}

#[tokio::test(start_paused = true)]
async fn index_follows_the_values_of_an_object() {
    let (shared, pods, _writer) = pods();
    pods.add_index(by_color);
    replace(&shared, vec![colored_pod("x", "a", 1, "red-blue"), colored_pod("x", "b", 2, "blue")], "2").await;
    assert_eq!(names(pods.by_index(by_color, "red")), ["a"]);
    assert_eq!(names(pods.by_index(by_color, "blue")), ["a", "b"]);
    shared.push_and_wait(Delta::Apply(colored_pod("x", "a", 3, "red"))).await;
    assert_eq!(names(pods.by_index(by_color, "red")), ["a"]);
    assert_eq!(names(pods.by_index(by_color, "blue")), ["b"]);
    shared.push_and_wait(Delta::Delete(colored_pod("x", "a", 4, "red"))).await;
    assert_eq!(names(pods.by_index(by_color, "red")), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn late_index_is_complete_and_repeated_index_ignored() {
    let (shared, pods, _writer) = pods();
    replace(&shared, vec![colored_pod("x", "a", 1, "red")], "2").await;
    for _ in 0..2 {
        pods.add_index(by_color);
        assert_eq!(names(pods.by_index(by_color, "red")), ["a"]);
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "no index `loop::index::by_color` on Pod: declare it with `index = …`")]
async fn undeclared_index_is_named() {
    let (_shared, pods, _writer) = pods();
    assert_eq!(pods.by_index(by_color, "red").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn panicking_index_function_costs_only_its_object() {
    let (shared, pods, _writer) = pods();
    pods.add_index(by_color);
    replace(&shared, vec![colored_pod("x", "a", 1, "planted"), colored_pod("x", "b", 2, "red")], "2").await;
    shared.push_and_wait(Delta::Apply(colored_pod("x", "c", 3, "red"))).await;
    assert_eq!(names(pods.by_index(by_color, "red")), ["b", "c"]);
    assert_eq!(pods.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_index_may_be_of_two_fields() {
    let (shared, pods, _writer) = pods();
    pods.add_index(by_namespace_and_color);
    replace(&shared, vec![colored_pod("x", "a", 1, "red"), colored_pod("y", "b", 2, "red-blue")], "2").await;
    assert_eq!(names(pods.by_index(by_namespace_and_color, "y/red")), ["b"]);
    assert_eq!(names(pods.by_index(by_namespace_and_color, "x/blue")), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn namespace_reads_its_objects_and_index_all_namespaces() {
    let (shared, pods, _writer) = pods();
    pods.add_index(by_color);
    let all = vec![colored_pod("x", "a", 1, "red"), colored_pod("y", "a", 2, "red"), colored_pod("y", "b", 3, "red")];
    replace(&shared, all, "3").await;
    assert_eq!(names(pods.in_namespace("y")), ["a", "b"]);
    assert_eq!(names(pods.in_namespace("z")), [""; 0]);
    assert_eq!(names(pods.by_index(by_color, "red")), ["a", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn readers_share_one_immutable_object() {
    let (shared, pods, _writer) = pods();
    replace(&shared, vec![colored_pod("x", "a", 1, "red")], "1").await;
    let key = Key::namespaced("x", "a");
    let (first, second) = (pods.get(&key).unwrap(), pods.get(&key).unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    // A change of a reader's copy does not affect the cached object.
    let mut copy = Pod::clone(&first);
    copy.metadata.labels = None;
    assert_eq!(pods.get(&key).unwrap().labels().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn replaced_object_is_freed_after_its_last_reader() {
    let (shared, _pods, _writer) = pods();
    let first = colored_pod("x", "a", 1, "red");
    let weak = Arc::downgrade(&first);
    replace(&shared, vec![first], "1").await;
    let read = shared.get(&ObjectKey::new(Some("x"), "a"));
    shared.push_and_wait(Delta::Apply(colored_pod("x", "a", 2, "red"))).await;
    yield_now().await;
    assert!(weak.upgrade().is_some());
    drop(read);
    assert!(weak.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn list_items_have_their_kind_as_watch_events() {
    // Items of a list have no `kind`, but objects of watch events do.
    let in_event = object("b", "8").replacen('{', r#"{"apiVersion":"v1","kind":"Pod","#, 1);
    let responses = vec![list("7", &[&object("a", "5"), "{}"], ""), watch(&[event("ADDED", &in_event)], 100)];
    let scripted = crate::script::Scripted::paged(responses).await;
    advance_seconds(1).await;
    for name in ["a", "b"] {
        let stored = scripted.source.store().get(&ObjectKey::new(Some("default"), name)).unwrap();
        let json: kctl::Json = serde_json::from_str(&stored.json()).unwrap();
        assert_eq!((json["apiVersion"].as_str(), json["kind"].as_str()), (Some("v1"), Some("Pod")), "{name}");
    }
}

static HERE: Mutex<Vec<String>> = Mutex::new(Vec::new());
static RED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A controller that is limited to one namespace.
#[controller(name = "here", namespaces = ["default"], reads = Secret)]
async fn here(config: Arc<ConfigMap>, cx: Context<here>) -> Result<Action> {
    let secrets = cx.store::<Secret>();
    let has_secret = |namespace: &&str| secrets.get(&Key::namespaced(namespace, "s")).is_some();
    let seen: Vec<_> = ["default", "other"].into_iter().filter(has_secret).collect();
    HERE.lock().push(format!("{} sees {} of {}", config.name_any(), seen.join(" "), secrets.len()));
    Ok(Action::await_change())
}

/// A controller that is limited to objects with the label `color=red`.
#[controller(name = "red", primary(selector = "color=red"))]
async fn red(config: Arc<ConfigMap>, cx: Context<red>) -> Result<Action> {
    RED.lock().push(format!("{} of {}", config.name_any(), cx.store::<ConfigMap>().len()));
    Ok(Action::await_change())
}

async fn create<K: Object + Resource<Scope = NamespaceResourceScope>>(
    world: &World,
    namespace: &str,
    object: kctl::Json,
) {
    let api = Api::<K>::namespaced(world.client.clone(), namespace);
    api.create(&PostParams::default(), &kctl::from_json(object).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controllers_see_only_their_namespaces_and_selectors() {
    let mut world = World::new();
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let other = kctl::from_json(kctl::json!({ "metadata": { "name": "other" } })).unwrap();
    namespaces.create(&PostParams::default(), &other).await.unwrap();
    for (namespace, color) in [("default", "red"), ("other", "blue")] {
        create::<Secret>(&world, namespace, kctl::json!({ "metadata": { "name": "s" } })).await;
        let meta = kctl::json!({ "name": color, "labels": { "color": color } });
        create::<ConfigMap>(&world, namespace, kctl::json!({ "metadata": meta })).await;
    }
    let view = world.run(app().controller::<here>().controller::<red>()).await;
    advance_seconds(10).await;
    create::<ConfigMap>(&world, "other", kctl::json!({ "metadata": { "name": "late" } })).await;
    advance_seconds(10).await;
    assert_eq!(*HERE.lock(), ["red sees default of 1"]);
    assert_eq!(*RED.lock(), ["red of 1"]);
    assert_eq!(view.sources().len(), 3, "ConfigMaps of one namespace, red ones, and Secrets");
}
