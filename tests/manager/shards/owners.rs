//! Children are in the cache of the replica that owns their primary.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    k8s::api::core::v1::Namespace,
    kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use kctl_runtime::{manager::shards::ShardConfig, shard::ShardBy};
use parking_lot::Mutex;
use serde_json::json;

use super::{N_SLOTS, ShardWorld};
use crate::{
    lease_candidates::{Contest, advance_seconds, config},
    replicas::Replica,
};

#[tokio::test(start_paused = true)]
async fn child_that_changes_its_owner_changes_the_cache() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    let [from, to] = [&a, &b].map(|replica| replica.cached_names("configmaps").pop_first().unwrap());
    let secrets = Api::<Secret>::default_namespaced(world.contest.client.clone());
    let owned_by = async |name: &str| {
        let uid = world.configs().get(name).await.unwrap().metadata.uid;
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true });
        json!({ "metadata": { "name": "extra", "ownerReferences": [owner] } })
    };
    let extra = kctl::from_json(owned_by(&from).await).unwrap();
    secrets.create(&PostParams::default(), &extra).await.unwrap();
    advance_seconds(1).await;
    assert!(a.cached_names("secrets").contains("extra") && !b.cached_names("secrets").contains("extra"));
    let runs = || [&from, &to].map(|name| world.seen.lock().n_runs[name]);
    let before = runs();
    secrets.patch("extra", &PatchParams::default(), &Patch::Merge(owned_by(&to).await)).await.unwrap();
    advance_seconds(1).await;
    assert!(!a.cached_names("secrets").contains("extra") && b.cached_names("secrets").contains("extra"));
    let after = runs();
    assert!(after[0] > before[0] && after[1] > before[1], "both owners are reconciled: {before:?}, {after:?}");
    // A Secret without an owner belongs to no slot.
    let orphan = json!({ "metadata": { "ownerReferences": null } });
    secrets.patch("extra", &PatchParams::default(), &Patch::Merge(orphan)).await.unwrap();
    advance_seconds(1).await;
    assert!(![&a, &b].iter().any(|replica| replica.cached_names("secrets").contains("extra")));
}

/// Creates a `Secret`, optionally with this `ConfigMap` as its controller.
async fn create_secret(world: &ShardWorld, name: &str, owner: Option<&str>) {
    let mut metadata = json!({ "name": name });
    if let Some(owner) = owner {
        let uid = world.configs().get(owner).await.unwrap().metadata.uid;
        metadata["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "controller": true }]);
    }
    let secret = kctl::from_json(json!({ "metadata": metadata })).unwrap();
    Api::<Secret>::default_namespaced(world.contest.client.clone())
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

async fn create_config(world: &ShardWorld, name: &str) {
    let config = json!({ "metadata": { "name": name }, "data": { "state": "0" } });
    world.configs().create(&PostParams::default(), &kctl::from_json(config).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn orphan_is_adopted_by_its_new_owners_replica() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    for number in 0..8 {
        create_secret(&world, &format!("orphan-{number}"), None).await;
    }
    advance_seconds(1).await;
    let orphans = |replica: &Replica| {
        let secrets = replica.cached_names("secrets").into_iter().filter(|name| name.starts_with("orphan-"));
        secrets.collect::<BTreeSet<_>>()
    };
    assert!(orphans(&a).is_empty() && orphans(&b).is_empty(), "an orphan belongs to no slot");
    for number in 0..8 {
        create_config(&world, &format!("orphan-{number}")).await;
    }
    advance_seconds(1).await;
    let (of_a, of_b) = (orphans(&a), orphans(&b));
    assert!(!of_a.is_empty() && !of_b.is_empty() && of_a.is_disjoint(&of_b), "{of_a:?} and {of_b:?}");
    assert_eq!(of_a.len() + of_b.len(), 8);
    for replica in [&a, &b] {
        assert!(orphans(replica).is_subset(&replica.cached_names("configmaps")));
    }
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn child_of_another_replicas_primary_is_not_adopted() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    let owner = a.cached_names("configmaps").pop_first().unwrap();
    let names: Vec<_> = (0..8).map(|number| format!("taken-{number}")).collect();
    for name in &names {
        create_secret(&world, name, Some(&owner)).await;
        create_config(&world, name).await;
    }
    advance_seconds(1).await;
    let cached_by_b: Vec<_> = names.iter().filter(|name| b.cached_names("configmaps").contains(*name)).collect();
    assert!(!cached_by_b.is_empty() && cached_by_b.len() < 8, "{cached_by_b:?}");
    // The replica that caches the child knows its controller. The other replica gets the error from the API server.
    let expected =
        |by| if by == "a" { "is not controlled by ConfigMap" } else { "only one owner may be the controller" };
    let failed: Vec<_> = world.seen.lock().failed.clone();
    assert_eq!(failed.iter().map(|(by, _)| *by).collect::<BTreeSet<_>>(), ["a", "b"].into());
    assert!(failed.iter().all(|(by, error)| error.contains(expected(*by))), "{:?}", failed.first());
    assert!(
        names.iter().all(|name| a.cached_names("secrets").contains(name) && !b.cached_names("secrets").contains(name))
    );
}

/// Keeps a `Secret` in each `Namespace` whose name begins with `shop-`.
#[controller(owns = Secret(apply), name = "spaces")]
async fn spaces(space: Arc<Namespace>, cx: Context<spaces>) -> Result<Action> {
    if space.name_any().starts_with("shop-") {
        cx.owned::<Secret>()
            .apply(json!({ "metadata": { "name": "of-space", "namespace": space.name_any() } }))
            .await?;
    }
    Ok(Action::await_change())
}

#[controller(name = "settings")]
async fn settings(_config: Arc<ConfigMap>, _cx: Context<settings>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn namespace_and_its_objects_belong_to_one_replica() {
    let contest = Contest::new();
    let client = contest.client.clone();
    let names: Vec<_> = (0..8).map(|number| format!("shop-{number}")).collect();
    let by = Arc::<Mutex<BTreeMap<String, &'static str>>>::default();
    let mut views = Vec::new();
    for replica in ["a", "b"] {
        let app = App::new("podset").controller::<spaces>().controller::<settings>();
        let slots = ShardConfig::new(config(replica), N_SLOTS, ShardBy::Namespace).unwrap();
        let manager = app.manager(client.clone()).await.unwrap().shard(client.clone(), slots).unwrap();
        let noted = by.clone();
        let manager = manager.on_end(Arc::new(move |report| {
            noted.lock().insert(format!("{} {}", report.controller, report.key), replica);
        }));
        views.push(manager.view());
        tokio::spawn(manager.run(std::future::pending()));
    }
    advance_seconds(5).await;
    for name in &names {
        let space = kctl::from_json(json!({ "metadata": { "name": name } })).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &space).await.unwrap();
        let config = kctl::from_json(json!({ "metadata": { "name": "settings" } })).unwrap();
        Api::<ConfigMap>::namespaced(client.clone(), name).create(&PostParams::default(), &config).await.unwrap();
    }
    advance_seconds(2).await;
    let by = by.lock().clone();
    let owners: Vec<_> = names.iter().map(|name| by[&format!("spaces {name}")]).collect();
    assert_eq!(owners.iter().collect::<BTreeSet<_>>().len(), 2, "{owners:?}");
    for (name, owner) in names.iter().zip(&owners) {
        assert_eq!(by[&format!("settings {name}/settings")], *owner, "{name}");
        for (replica, view) in ["a", "b"].into_iter().zip(&views) {
            let source = view.sources().iter().find(|source| source.config().kind.plural == "secrets").unwrap();
            let all = source.store().all();
            let is_cached = all.iter().any(|secret| secret.key().namespace.as_deref() == Some(name));
            assert_eq!(is_cached, replica == *owner, "the Secret in {name} is where its owner, the Namespace, is");
        }
    }
}
