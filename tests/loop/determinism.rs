//! Invariant 10: the same seed always gives the same trace.

use futures::StreamExt;
use kctl::{
    kube::{
        Api,
        api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
    },
    object::Stored,
    prelude::*,
};
use kctl_tests::Fault;
use tokio::{
    task::JoinSet,
    time::{Duration, sleep},
};

use crate::world::{Log, With, World, advance_seconds, app, metadata_named, pod};

/// Number of objects, so that an order that depends on a hash map would differ between runs.
const N_CONFIGS: usize = 24;

/// Creates two Pods for each `ConfigMap`, and deletes all Pods while the watches are down. Returns the requests and the
/// Pods.
async fn trace(seed: u64) -> Vec<String> {
    let mut world = World::seeded(seed);
    let app = app()
        .configs(|_, cx| async move {
            let pods = cx.owned::<Pod>();
            for _ in pods.len()..2 {
                pods.create(pod_without_name()).await?;
            }
            Ok(Action::await_change())
        })
        .secrets(|_, _| async { Ok(Action::requeue(Duration::from_secs(7))) });
    for n in 0..N_CONFIGS {
        world.set(&format!("config-{n}"), "").await;
    }
    world.run(app).await;
    // Some creates fail, and their keys are retried with backoff.
    world.faults.add(Fault::Reject(500), |request| request.method == "POST");
    sleep(Duration::from_millis(50)).await;
    world.faults.clear();
    advance_seconds(60).await;
    world.stop_reads("pods");
    world.pods().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    world.server.compact();
    world.faults.clear();
    advance_seconds(60).await;
    let pods = world.pods().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.len(), 2 * N_CONFIGS);
    // The body of a create does not contain a generated name, so the Pods are compared as well.
    let objects = pods.iter().map(|pod| kctl::json!(pod).to_string());
    requests(&world).chain(objects).collect()
}

/// Returns the requests without trace IDs, which never repeat, so that each can be found in the logs of several runs.
fn requests(world: &World) -> impl Iterator<Item = String> {
    let requests = world.server.requests().into_iter();
    requests.map(|mut request| {
        request.trace.clear();
        format!("{request:?}")
    })
}

/// Returns the first line that differs.
fn difference(a: &[String], b: &[String]) -> Option<String> {
    let place = (0..a.len().max(b.len())).find(|place| a.get(*place) != b.get(*place))?;
    Some(format!("line {place}:\n  {:?}\n  {:?}", a.get(place), b.get(place)))
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_the_same_requests() {
    let (first, second) = (trace(7).await, trace(7).await);
    assert!(first.len() > 4 * N_CONFIGS);
    assert_eq!(difference(&first, &second), None);
}

/// Runs Pods that the controller and the kubelet change concurrently, and deletes their namespace. The server has all
/// its controllers.
async fn trace_of_cluster(seed: u64) -> Vec<String> {
    let (mut world, log) = (World::seeded(seed), Log::default());
    world.run_cluster();
    let app = app()
        .configs(|_, cx| async move {
            let pods = cx.owned::<Pod>();
            for _ in pods.len()..2 {
                pods.create(pod_without_name()).await?;
            }
            for pod in pods.iter().filter(|pod| pod.labels().is_empty()) {
                let mut pod = Pod::clone(&pod);
                pod.labels_mut().insert("seen".into(), "yes".into());
                pods.update(pod).await?;
            }
            Ok(Action::await_change())
        })
        .secrets(|_, _| async { Ok(Action::await_change()) })
        .services(|_, _| async { Ok(Action::await_change()) });
    let view = world.run(app).await;
    for source in view.sources() {
        let (log, kind) = (log.clone(), source.config().kind.to_string());
        let handler = move |change: &Change<Stored>, _origin| {
            let latest = change.latest().meta();
            log.add(format!("{kind} {} at {} of {}", latest.name(), latest.resource_version, change.states().count()));
        };
        source.store().subscribe(Arc::new(handler)).await.wait_until_delivered().await;
    }
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let namespace = Namespace { metadata: metadata_named("work"), ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    for n in 0..4 {
        let meta = || metadata_named(&format!("object-{n}"));
        let configs = Api::namespaced(world.client.clone(), "work");
        let config = ConfigMap { metadata: meta(), ..ConfigMap::default() };
        configs.create(&PostParams::default(), &config).await.unwrap();
        let secrets = Api::namespaced(world.client.clone(), "work");
        secrets.create(&PostParams::default(), &Secret { metadata: meta(), ..Secret::default() }).await.unwrap();
    }
    advance_seconds(60).await;
    namespaces.delete("work", &DeleteParams::default()).await.unwrap();
    advance_seconds(300).await;
    assert!(namespaces.get_opt("work").await.unwrap().is_none());
    log.take().into_iter().chain(requests(&world)).collect()
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_the_same_cluster() {
    let (first, second) = (trace_of_cluster(7).await, trace_of_cluster(7).await);
    assert!(first.len() > 50);
    assert_eq!(difference(&first, &second), None);
}

#[tokio::test(start_paused = true)]
async fn watches_receive_events_in_start_order() {
    let (world, log) = (World::new(), Log::default());
    let mut watches = JoinSet::new();
    for n in 0..4 {
        let (pods, log) = (world.pods(), log.clone());
        watches.spawn(async move {
            let mut events = pods.watch(&WatchParams::default(), "0").await.unwrap().boxed();
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(_) = event {
                    log.add(n.to_string());
                }
            }
        });
    }
    for _ in 0..8 {
        advance_seconds(1).await;
        world.pods().create(&PostParams::default(), &pod_without_name()).await.unwrap();
    }
    advance_seconds(1).await;
    assert_eq!(log.take().concat(), "0123".repeat(8));
}

fn pod_without_name() -> Pod {
    let metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
    Pod { metadata, ..pod("") }
}

#[tokio::test(start_paused = true)]
async fn another_seed_gives_other_names() {
    let mut names = Vec::new();
    for seed in [1, 2] {
        let world = World::seeded(seed);
        world.pods().create(&PostParams::default(), &pod_without_name()).await.unwrap();
        names.extend(world.pod_names().await);
    }
    assert_ne!(names[0], names[1]);
}
