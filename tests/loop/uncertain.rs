//! Invariant 6 for every write: a write whose response is lost, or that is cancelled, happens once, however late the
//! watches are.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kctl::{
    k8s::api::apps::v1::{DeploymentStatus, StatefulSet},
    kube::{
        Api,
        api::{DeleteParams, PostParams},
    },
    prelude::*,
};
use kctl_tests::{Fault, RequestSummary};

use crate::{
    deployments_controller::controlled_by,
    world::{With, World, advance_seconds, app, metadata_named, pod, text},
};

/// Performs the write that the `ConfigMap` `go` names, unless the cache shows its effect.
#[controller(
    owns = Secret,
    watches = ConfigMap(map = every),
    reads = Pod(create, update, patch, status, delete, deletecollection, eviction, binding),
    reads = StatefulSet(scale),
    primary(status, patch, scale, delete),
    timeout = "1s"
)]
async fn doer(deployment: Arc<Deployment>, cx: Context<doer>) -> Result<Action> {
    for go in cx.store::<ConfigMap>().iter().filter(|config| config.name_any() == "go") {
        act(&text(&go), &deployment, &cx).await?;
    }
    Ok(Action::await_change())
}

fn every(_config: &ConfigMap, all: &Store<Deployment>) -> Vec<Key<Deployment>> {
    all.keys()
}

fn secret(name: &str) -> Secret {
    Secret { metadata: metadata_named(name), ..Secret::default() }
}

fn stateful_set() -> StatefulSet {
    let labels = kctl::json!({ "app": "s" });
    let set = kctl::json!({
        "metadata": { "name": "s" },
        "spec": {
            "serviceName": "s",
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
            },
        },
    });
    serde_json::from_value(set).unwrap()
}

fn generated_metadata() -> ObjectMeta {
    let namespace = Some("default".into());
    ObjectMeta { generate_name: Some("g-".into()), namespace, ..ObjectMeta::default() }
}

fn is_undone(meta: &ObjectMeta) -> bool {
    meta.labels.as_ref().is_none_or(|labels| !labels.contains_key("done"))
}

async fn act(what: &str, deployment: &Deployment, cx: &Context<doer>) -> Result<()> {
    let (owned, pods) = (cx.owned::<Secret>(), cx.objects::<Pod>());
    let done = kctl::json!({ "metadata": { "labels": { "done": "yes" } } });
    match (what, owned.iter().next(), cx.store::<Pod>().iter().next()) {
        ("owned.create", None, _) => drop(owned.create(Secret { metadata: generated_metadata(), ..secret("") }).await?),
        ("owned.apply", None, _) => drop(owned.apply(secret("s")).await?),
        ("owned.patch", Some(s), _) if is_undone(&s.metadata) => drop(owned.patch(&s, &done).await?),
        ("owned.delete", Some(s), _) => owned.delete(&s).await?,
        ("converge", s, _) if s.is_some() => drop(owned.converge::<Secret>([]).await?),
        ("release", Some(s), _) => drop(cx.release(&*s).await?),
        ("adopt", None, _) => drop(cx.adopt(&*cx.store::<Secret>().iter().next().ok_or("a secret")?).await?),
        ("create", _, None) => drop(pods.create(&Pod { metadata: generated_metadata(), ..pod("") }).await?),
        ("update", _, Some(p)) if is_undone(&p.metadata) => {
            let mut new = Pod::clone(&p);
            new.metadata.labels = Some([("done".to_owned(), "yes".to_owned())].into());
            drop(pods.update(&new).await?);
        }
        ("patch", _, Some(p)) if is_undone(&p.metadata) => drop(pods.patch(&p, &done).await?),
        ("delete", _, Some(p)) => pods.delete(&p).await?,
        ("delete_collection", _, Some(_)) => pods.delete_collection(Some("default"), "").await?,
        ("evict", _, Some(p)) => pods.evict(&p).await?,
        ("patch_status", _, Some(p)) if p.status.as_ref().is_none_or(|status| status.message.is_none()) => {
            drop(pods.patch_status(&p, kctl::json!({ "message": "done" })).await?);
        }
        ("bind", _, Some(p)) if p.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()) => {
            pods.bind(&p, "n1").await?;
        }
        ("scale", ..) => scale(cx).await?,
        ("primary.patch", ..) if is_undone(&deployment.metadata) => drop(cx.patch(&done).await?),
        ("primary.status", ..) => {
            cx.patch_status(DeploymentStatus { replicas: Some(1), ..DeploymentStatus::default() }).await?;
        }
        ("primary.scale", ..) if deployment.spec.replicas != Some(7) => {
            cx.scale(7).await?;
        }
        ("primary.delete", ..) => cx.delete().await?,
        _ => {}
    }
    Ok(())
}

async fn scale(cx: &Context<doer>) -> Result<()> {
    for set in cx.store::<StatefulSet>().iter().filter(|set| set.spec.replicas != Some(7)) {
        cx.objects::<StatefulSet>().scale(&set, 7).await?;
    }
    Ok(())
}

/// All writes, each with the object that exists before it.
const WRITES: [(&str, &str); 21] = [
    ("owned.create", ""),
    ("owned.apply", ""),
    ("owned.patch", "owned secret"),
    ("owned.delete", "owned secret"),
    ("converge", "owned secret"),
    ("release", "owned secret"),
    ("adopt", "secret"),
    ("create", ""),
    ("update", "pod"),
    ("patch", "pod"),
    ("delete", "pod"),
    ("delete_collection", "pod"),
    ("evict", "pod"),
    ("patch_status", "pod"),
    ("bind", "pod"),
    ("scale", "stateful set"),
    ("primary.patch", ""),
    ("primary.status", ""),
    ("primary.scale", ""),
    ("primary.delete", ""),
    ("nothing", "pod"),
];

/// Creates a world with the object that the write needs, and a controller that waits for `go`.
async fn world(before: &str) -> World {
    let mut world = World::new();
    let web = world.create_deployment("web").await;
    let secrets = Api::<Secret>::default_namespaced(world.client.clone());
    let create = PostParams::default();
    if before == "pod" {
        world.pods().create(&create, &pod("p")).await.unwrap();
    } else if before == "stateful set" {
        let sets = Api::<StatefulSet>::default_namespaced(world.client.clone());
        sets.create(&create, &stateful_set()).await.unwrap();
    } else if !before.is_empty() {
        let mut secret = secret("s");
        secret.metadata.owner_references = before.starts_with("owned").then(|| vec![controlled_by(&web)]);
        secrets.create(&create, &secret).await.unwrap();
    }
    world.run(app().controller::<doer>()).await;
    advance_seconds(1).await;
    world
}

fn n_writes(world: &World) -> usize {
    let is_controllers_resource =
        |resource: &str| !resource.starts_with("configmaps") && !resource.starts_with("events");
    let is_write = |verb: &str| !["get", "list", "watch"].contains(&verb);
    let requests = world.server.requests();
    requests.iter().filter(|request| is_write(request.verb) && is_controllers_resource(&request.resource)).count()
}

/// Resources that the controller writes.
const CACHED: [&str; 4] = ["secrets", "pods", "statefulsets", "deployments"];

/// Stops the watches of all written resources until the faults are cleared. They reconnect with a delay.
fn stop_watches(world: &World) {
    for plural in CACHED {
        world.stop_reads(plural);
    }
}

fn is_write(request: &RequestSummary) -> bool {
    request.method != "GET" && !request.path.ends_with("/events")
}

/// Checks that each write happens once if this fault hides its response for this long. The watches are down as well.
async fn each_is_made_once(fault: Fault, lasts: Duration) {
    let mut n_made = Vec::new();
    for (what, before) in WRITES {
        let world = world(before).await;
        let n_before = n_writes(&world);
        stop_watches(&world);
        world.faults.add(fault, is_write);
        world.set("go", what).await;
        tokio::time::sleep(lasts).await;
        let expected = usize::from(what != "nothing");
        assert_eq!(n_writes(&world) - n_before, expected, "{what} is done");
        world.faults.clear();
        advance_seconds(60).await;
        n_made.push((what, n_writes(&world) - n_before));
    }
    assert_eq!(n_made, WRITES.map(|(what, _)| (what, usize::from(what != "nothing"))));
}

#[tokio::test(start_paused = true)]
async fn write_with_lost_response_happens_once_without_watches() {
    each_is_made_once(Fault::LoseResponse, Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn timed_out_write_happens_once_without_watches() {
    // The fault ends just after the watches were retried without success.
    each_is_made_once(Fault::DelayResponse(Duration::from_secs(5)), Duration::from_millis(999)).await;
}

#[tokio::test(start_paused = true)]
async fn function_waits_until_the_list_succeeds() {
    let (n_runs, n_lists) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (begun, rejected) = (n_runs.clone(), n_lists.clone());
    let mut world = World::new();
    let app = app().configs(move |_, cx| {
        begun.fetch_add(1, Ordering::Relaxed);
        async move {
            let pods = cx.owned::<Pod>();
            if pods.is_empty() {
                pods.create(Pod { metadata: generated_metadata(), ..pod("") }).await?;
            }
            Ok(Action::await_change())
        }
    });
    world.run(app).await;
    advance_seconds(1).await;
    world.faults.add(Fault::LoseResponse, is_write);
    world.faults.add(Fault::Reject(500), move |request: &RequestSummary| {
        let is_list = request.reads("pods") && !request.is_watch;
        rejected.fetch_add(usize::from(is_list), Ordering::Relaxed);
        is_list
    });
    world.set("go", "").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(n_lists.load(Ordering::Relaxed) > 2, "the failed list is retried");
    assert_eq!(n_runs.load(Ordering::Relaxed), 1, "the function waits for a list");
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(n_runs.load(Ordering::Relaxed), 2, "a list has succeeded");
    assert_eq!(n_writes(&world), 1, "the Pod is created once");
}

#[tokio::test(start_paused = true)]
async fn next_reconcile_sees_answered_writes_despite_deaf_watches() {
    let mut n_made = Vec::new();
    for (what, before) in WRITES {
        let world = world(before).await;
        let n_before = n_writes(&world);
        for plural in CACHED {
            world.faults.add(Fault::Break, move |request: &RequestSummary| request.reads(plural) && request.is_watch);
        }
        world.faults.cut_watches();
        world.set("go", what).await;
        for n in 0..3 {
            advance_seconds(2).await;
            world.set("again", &n.to_string()).await;
        }
        n_made.push((what, n_writes(&world) - n_before));
    }
    assert_eq!(n_made, WRITES.map(|(what, _)| (what, usize::from(what != "nothing"))));
}

/// Has a finalizer, and counts its cleanups.
#[controller(of = Deployment, finalizer = "loop.example.com/kept", timeout = "1s")]
struct Kept {
    n_cleaned: Arc<AtomicUsize>,
}

impl Reconcile for Kept {
    async fn reconcile(&self, _: Arc<Deployment>, _: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Kept {
    async fn finalize(&self, _: Arc<Deployment>, _: Context<Self>) -> Result<()> {
        self.n_cleaned.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Injects this fault into each write. From the first write on, watches of Deployments are down.
fn fault_that_deafens(world: &World, fault: Fault) {
    let (faults, deaf) = (world.faults.clone(), Arc::<AtomicBool>::default());
    let is_deaf = deaf.clone();
    world.faults.add(Fault::Break, move |request| is_deaf.load(Ordering::Relaxed) && request.reads("deployments"));
    world.faults.add(fault, move |request| {
        let is_write = is_write(request);
        if is_write && !deaf.swap(true, Ordering::Relaxed) {
            faults.cut_watches();
        }
        is_write
    });
}

/// Returns the number of requests that patch Deployments during a fault, and after it.
async fn patches_under(world: &World, fault: Fault, lasts: Duration, cause: impl AsyncFnOnce()) -> [usize; 2] {
    let n = || world.n_requests("patch", "deployments");
    let n_before = n();
    fault_that_deafens(world, fault);
    cause().await;
    tokio::time::sleep(lasts).await;
    let n_meanwhile = n();
    world.faults.clear();
    advance_seconds(60).await;
    [n_meanwhile - n_before, n() - n_meanwhile]
}

#[tokio::test(start_paused = true)]
async fn finalizer_with_lost_response_runs_once() {
    let lost = (Fault::LoseResponse, Duration::from_millis(1));
    let late = (Fault::DelayResponse(Duration::from_secs(5)), Duration::from_millis(1_100));
    for (fault, lasts) in [lost, late] {
        let n_cleaned = Arc::<AtomicUsize>::default();
        let (counted, mut world) = (n_cleaned.clone(), World::new());
        let kept = move |_env| std::future::ready(Ok(Kept { n_cleaned: counted.clone() }));
        world.run(app().controller_with(kept)).await;
        advance_seconds(1).await;
        let added = patches_under(&world, fault, lasts, async || drop(world.create_deployment("web").await)).await;
        assert_eq!(added, [1, 0], "the finalizer is set under {fault:?}");
        let held = world.deployments().get("web").await.unwrap();
        assert_eq!(held.finalizers(), ["loop.example.com/kept"]);
        let delete = async || drop(world.deployments().delete("web", &DeleteParams::default()).await.unwrap());
        let removed = patches_under(&world, fault, lasts, delete).await;
        assert_eq!(removed, [1, 0], "the finalizer is taken away under {fault:?}");
        assert!(world.deployments().get_opt("web").await.unwrap().is_none(), "it is gone");
        assert_eq!(n_cleaned.load(Ordering::Relaxed), 1, "cleanups under {fault:?}");
    }
}
