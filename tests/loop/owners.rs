//! Keys that a change queues: the owners before and after it, and the mapper's keys for both states.

use std::slice::from_ref;

use kctl::{
    k8s::apimachinery::pkg::apis::meta::v1::OwnerReference,
    key::ObjectKey,
    kube::api::{ListParams, Patch, PatchParams},
    object::{Kind, Stored},
    prelude::*,
    spec::RelationSpec,
};
use kctl_runtime::{
    handler,
    queue::{QueueConfig, WorkQueue},
    spec::Relation,
    store::{Delta, SharedStore},
};

use crate::{
    deployments_controller::{Deployments, controlled_by, deployments},
    script::object,
    world::{Log, World, advance_seconds, app, pod},
};

/// Logs each reconcile with the Pods that the Deployment owns.
fn logging(log: &Log) -> App {
    let log = log.clone();
    deployments(app(), move |deployment, cx| {
        let pods: Vec<_> = cx.owned::<Pod>().iter().map(|pod| pod.name_any()).collect();
        log.add(format!("{}: {}", deployment.name_any(), pods.join(" ")));
        async { Ok(Action::await_change()) }
    })
}

/// Creates the Deployments `a` and `b` with one Pod each, and runs a controller until it is idle.
async fn two_owners(log: &Log) -> (World, Deployment, Deployment) {
    let mut world = World::new();
    let (a, b) = (world.create_deployment("a").await, world.create_deployment("b").await);
    world.create_pod_of("pod-a", &[controlled_by(&a)]).await;
    world.create_pod_of("pod-b", &[controlled_by(&b)]).await;
    world.run(logging(log)).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["a: pod-a", "b: pod-b"]);
    (world, a, b)
}

async fn set_owners(world: &World, pod: &str, owners: &[OwnerReference]) {
    let patch = Patch::Merge(kctl::json!({ "metadata": { "ownerReferences": owners } }));
    world.pods().patch(pod, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn object_that_changes_hands_concerns_both_owners() {
    let log = Log::default();
    let (world, _a, b) = two_owners(&log).await;
    set_owners(&world, "pod-a", &[controlled_by(&b)]).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["a: ", "b: pod-a pod-b"]);
    // An update that keeps the owner queues it once.
    let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "color": "red" } } }));
    world.pods().patch("pod-a", &PatchParams::default(), &label).await.unwrap();
    advance_seconds(5).await;
    assert_eq!(log.take(), ["b: pod-a pod-b"]);
}

#[tokio::test(start_paused = true)]
async fn swapped_objects_are_seen_at_their_new_owners() {
    for deaf in [false, true] {
        let log = Log::default();
        let (world, a, b) = two_owners(&log).await;
        if deaf {
            world.stop_reads("pods");
        }
        set_owners(&world, "pod-a", &[controlled_by(&b)]).await;
        set_owners(&world, "pod-b", &[controlled_by(&a)]).await;
        if deaf {
            world.server.compact();
            world.faults.clear();
        }
        advance_seconds(60).await;
        let lines = log.take();
        let last = |name: &str| lines.iter().rfind(|line| line.starts_with(name)).cloned().unwrap_or_default();
        assert_eq!([last("a"), last("b")], ["a: pod-b", "b: pod-a"], "deaf: {deaf}");
    }
}

#[tokio::test(start_paused = true)]
async fn object_recreated_for_another_owner_concerns_both() {
    let log = Log::default();
    let (world, _a, b) = two_owners(&log).await;
    world.stop_reads("pods");
    world.pods().delete("pod-a", &kctl::kube::api::DeleteParams::default()).await.unwrap();
    world.create_pod_of("pod-a", &[controlled_by(&b)]).await;
    world.server.compact();
    world.faults.clear();
    advance_seconds(60).await;
    let lines = log.take();
    assert!(lines.contains(&"a: ".into()) && lines.last() == Some(&"b: pod-b pod-a".into()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn recreated_primary_owns_nothing_of_its_predecessor() {
    let log = Log::default();
    let (world, _a, _b) = two_owners(&log).await;
    world.stop_reads("deployments");
    world.deployments().delete("a", &kctl::kube::api::DeleteParams::default()).await.unwrap();
    world.create_deployment("a").await;
    world.server.compact();
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a: "]);
}

/// Returns the keys of the Deployments that a change of a Pod queues.
fn queued_keys(relation: &RelationSpec, states: &[Arc<Stored>]) -> Vec<String> {
    queued_primaries(&Relation::<Deployments, Deployment>::watched("").erase(), relation, states)
}

/// Returns the keys of the primaries that a change of a Pod queues.
fn queued_primaries(primary: &RelationSpec, relation: &RelationSpec, states: &[Arc<Stored>]) -> Vec<String> {
    let queue = WorkQueue::new(QueueConfig::default());
    let handle = handler::for_relation(1, relation, primary, Arc::new(SharedStore::default()), queue.clone());
    let change = match states {
        [one] => Change::Added(one.clone()),
        [old, new] => Change::Updated { old: old.clone(), new: new.clone() },
        _ => panic!("a change has one state or two"),
    };
    handle(&change, kctl_runtime::store::Origin::Live);
    queue.shut_down();
    let take = || futures::executor::block_on(queue.get()).map(|item| item.key.to_string());
    let mut keys: Vec<_> = std::iter::from_fn(take).collect();
    keys.sort();
    keys
}

fn owned_pod(owners: &[kctl::Json]) -> Arc<Stored> {
    let json = kctl::json!({ "metadata": {
        "namespace": "default", "name": "pod", "uid": "1", "resourceVersion": "1", "ownerReferences": owners,
    } });
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &json.to_string()).unwrap())
}

fn owner(api_version: &str, kind: &str, name: &str, controller: bool) -> kctl::Json {
    kctl::json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": controller })
}

#[tokio::test(start_paused = true)]
async fn owner_is_the_controller_by_group_and_kind() {
    let pods = Relation::<Deployments, Pod>::owned("").erase();
    let web = owner("apps/v1", "Deployment", "web", true);
    let table = [
        (vec![web.clone()], vec!["default/web"]),
        (vec![owner("apps/v1beta2", "Deployment", "web", true)], vec!["default/web"]),
        (vec![owner("extensions/v1", "Deployment", "web", true)], vec![]),
        (vec![owner("v1", "Deployment", "web", true)], vec![]),
        (vec![owner("apps/v1", "ReplicaSet", "web", true)], vec![]),
        (vec![owner("apps/v1", "Deployment", "web", false)], vec![]),
        (vec![owner("apps/v1", "Deployment", "other", false), web.clone()], vec!["default/web"]),
        (vec![], vec![]),
    ];
    for (owners, expected) in table {
        assert_eq!(queued_keys(&pods, &[owned_pod(&owners)]), expected, "{owners:?}");
    }
    let mut cluster_scoped = Relation::<Deployments, Deployment>::watched("").erase();
    cluster_scoped.namespaced = false;
    assert_eq!(
        queued_primaries(&cluster_scoped, &pods, &[owned_pod(from_ref(&web))]),
        ["web"],
        "it is in no namespace"
    );
    let other = owner("apps/v1", "Deployment", "other", true);
    let moved = [owned_pod(from_ref(&web)), owned_pod(&[other])];
    assert_eq!(queued_keys(&pods, &moved), ["default/other", "default/web"]);
    assert_eq!(queued_keys(&pods, &[owned_pod(from_ref(&web)), owned_pod(&[web])]), ["default/web"]);
}

fn by_labels(pod: &Pod, _all: &Store<Deployment>) -> Vec<Key<Deployment>> {
    pod.labels().keys().map(|name| Key::namespaced("default", name)).collect()
}

#[test]
fn mapper_keys_of_both_states_are_deduplicated() {
    let labelled = |names: &[&str]| {
        let labels: std::collections::BTreeMap<_, _> = names.iter().map(|name| (*name, "")).collect();
        let json = kctl::json!({ "metadata": { "namespace": "default", "name": "pod", "labels": labels } });
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &json.to_string()).unwrap())
    };
    let pods = Relation::<Deployments, Pod>::watched("").map(by_labels).erase();
    let states = [labelled(&["a", "b"]), labelled(&["b", "c"])];
    assert_eq!(queued_keys(&pods, &states), ["default/a", "default/b", "default/c"]);
}

#[tokio::test(start_paused = true)]
async fn initial_list_is_queued_behind_live_changes() {
    let store = Arc::new(SharedStore::default());
    tokio::spawn(store.clone().write());
    let queue = WorkQueue::new(QueueConfig::default());
    let _delivered = store.subscribe(handler::for_object(queue.clone())).await;
    let stored =
        |name: &str, version: &str| Arc::new(Stored::accept(&Kind::of::<Pod>(), &object(name, version)).unwrap());
    let take = async || {
        let item = queue.get().await.unwrap();
        queue.done(&item.key);
        (item.key.name.to_string(), item.priority)
    };
    store.push(Delta::Replace(None, vec![stored("a", "1"), stored("b", "2")], "2".into())).await;
    store.push_and_wait(Delta::Apply(stored("c", "3"))).await;
    let all = [take().await, take().await, take().await];
    let low = handler::PRIORITY_INITIAL;
    assert_eq!(all, [("c".into(), 0), ("a".into(), low), ("b".into(), low)]);
    // A list without changes queues nothing.
    store
        .push_and_wait(Delta::Replace(None, vec![stored("a", "1"), stored("b", "2"), stored("c", "3")], "9".into()))
        .await;
    assert_eq!(queue.stats().keys, 0);
    // A deleted object is queued by its key.
    store.push_and_wait(Delta::Replace(None, vec![], "10".into())).await;
    let keys = [take().await.0, take().await.0, take().await.0];
    assert_eq!(keys, ["a", "b", "c"]);
    assert!(store.get(&ObjectKey::new(Some("default"), "a")).is_none());
}

/// Creates, applies and adopts Pods whose owner references block a foreground deletion.
#[controller(owns = Pod(block_owner_deletion))]
async fn blocking(_deployment: Arc<Deployment>, cx: Context<blocking>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    if pods.is_empty() {
        pods.create(pod("created")).await?;
        pods.apply(kctl::json!({ "metadata": { "name": "applied" }, "spec": pod("applied").spec })).await?;
        let orphan = cx.store::<Pod>().get(&Key::namespaced("default", "orphan")).ok_or("no orphan")?;
        cx.adopt(&*orphan).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn owner_references_block_owner_deletion_where_declared() {
    for declared in [true, false] {
        let mut world = World::new();
        world.create_deployment("a").await;
        world.create_pod_of("orphan", &[]).await;
        world.run(if declared { app().controller::<blocking>() } else { creating() }).await;
        advance_seconds(5).await;
        for pod in world.pods().list(&ListParams::default()).await.unwrap() {
            let blocks: Vec<_> = pod.owner_references().iter().map(|owner| owner.block_owner_deletion).collect();
            let expected: &[_] = match (declared, pod.name_any().as_str()) {
                (true, _) => &[Some(true)],
                (false, "orphan") => &[],
                (false, _) => &[None],
            };
            assert_eq!(blocks, expected, "{}", pod.name_any());
        }
    }
}

/// Owns Pods with the default owner reference.
fn creating() -> App {
    deployments(app(), |_deployment, cx| async move {
        let pods = cx.owned::<Pod>();
        if pods.is_empty() {
            pods.create(pod("created")).await?;
        }
        Ok(Action::await_change())
    })
}
