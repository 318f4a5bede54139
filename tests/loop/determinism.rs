//! Invariant 10: one seed, one trace.

use kctl::{
    kube::api::{DeleteParams, ListParams, PostParams},
    prelude::*,
};
use kctl_tests::Fault;
use tokio::time::{Duration, sleep};

use crate::world::{With, World, app, pod, seconds};

/// Objects to which hash maps can give many orders.
const N_CONFIGS: usize = 24;

/// Two pods for each `ConfigMap`, through a cut of the watches in which all pods vanish.
async fn trace(seed: u64) -> Vec<String> {
    let mut world = World::seeded(seed);
    let app = app()
        .configs(|_, cx| async move {
            let pods = cx.owned::<Pod>();
            for _ in pods.len()..2 {
                let mut pod = pod("");
                pod.metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
                pods.create(pod).await?;
            }
            Ok(Action::await_change())
        })
        .secrets(|_, _| async { Ok(Action::requeue(Duration::from_secs(7))) });
    for n in 0..N_CONFIGS {
        world.set(&format!("config-{n}"), "").await;
    }
    world.run(app).await;
    // Some creations fail, and their keys come back with the backoff.
    world.faults.add(Fault::Refuse(500), |asked| asked.method == "POST");
    sleep(Duration::from_millis(50)).await;
    world.faults.clear();
    seconds(60).await;
    world.deafen("pods");
    world.pods().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    world.server.compact();
    world.faults.clear();
    seconds(60).await;
    let pods = world.pods().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.len(), 2 * N_CONFIGS);
    // A request for a generated name says not for whom it is; the object does.
    let objects = pods.iter().map(|pod| kctl::json!(pod).to_string());
    let requests = world.server.requests().into_iter().map(|request| format!("{request:?}"));
    requests.chain(objects).collect()
}

/// The first lines that differ, with their place.
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

#[tokio::test(start_paused = true)]
async fn another_seed_gives_other_names() {
    let mut names = Vec::new();
    for seed in [1, 2] {
        let world = World::seeded(seed);
        let mut unnamed = pod("");
        unnamed.metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
        world.pods().create(&PostParams::default(), &unnamed).await.unwrap();
        names.extend(world.pod_names().await);
    }
    assert_ne!(names[0], names[1]);
}
