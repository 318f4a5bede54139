//! Subresources of owned objects: each needs its verb, and objects with another owner are never written.

use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
};

use crate::world::{Log, World, advance_seconds, app, pod};

#[controller(of = ConfigMap, owns = Pod(create, eviction, status), owns = ReplicaSet(create, scale))]
struct Subresources {
    log: Log,
}

impl Reconcile for Subresources {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let (pods, sets) = (cx.owned::<Pod>(), cx.owned::<ReplicaSet>());
        if !sets.is_empty() {
            return Ok(Action::await_change());
        }
        let template = kctl::json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a", "image": "a" }] } });
        let set = kctl::json!({
            "metadata": { "name": "own" },
            "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template },
        });
        let set = sets.create(kctl::from_json(set)?).or_get().await?;
        sets.scale(&set, 3).await?;
        let own = pods.create(pod("own")).or_get().await?;
        pods.patch_status(&own, kctl::json!({ "message": "leaves" })).await?;
        pods.evict(&own).await?;

        let theirs = cx.store::<Pod>().get(&Key::namespaced("default", "theirs")).ok_or("a pod")?;
        let rejected = [
            pods.patch_status(&theirs, kctl::json!({ "message": "leaves" })).await.map(drop),
            pods.evict(&theirs).await,
        ];
        for result in rejected {
            self.log.add(result.err().map_or("done".into(), |error| error.to_string()));
        }
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn only_subresources_of_owned_kinds_are_written() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_pod_of("theirs", &[]).await;
    let web = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } })).unwrap();
    Api::<ConfigMap>::default_namespaced(world.client.clone()).create(&PostParams::default(), &web).await.unwrap();
    let added = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Subresources { log: added.clone() })))).await;
    advance_seconds(1).await;
    let rejected = "theirs is not controlled by ConfigMap default/web";
    let lines = log.take();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(rejected)), "{lines:?}");
    let set = Api::<ReplicaSet>::default_namespaced(world.client.clone()).get("own").await.unwrap();
    assert_eq!(set.spec.replicas, Some(3));
    let pods = world.pods();
    assert!(pods.get_opt("own").await.unwrap().is_none_or(|own| own.metadata.deletion_timestamp.is_some()));
    let theirs = pods.get("theirs").await.unwrap();
    assert!(theirs.metadata.deletion_timestamp.is_none() && theirs.status.and_then(|status| status.message).is_none());
    for (verb, resource) in [("patch", "pods/status"), ("create", "pods/eviction"), ("patch", "replicasets/scale")] {
        assert_eq!(world.n_requests(verb, resource), 1, "{verb} {resource}");
    }
}

/// Writes a status to a Pod, then a status that can't be serialized, and a patch that is a string.
#[controller(of = ConfigMap, owns = Pod(create, patch, status))]
struct Wrong {
    log: Log,
}

impl Reconcile for Wrong {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let pods = cx.owned::<Pod>();
        let own = pods.create(pod("own")).or_get().await?;
        pods.patch_status(&own, kctl::json!({ "message": "stays" })).await?;
        let keys_are_no_texts = std::collections::BTreeMap::from([((1, 2), 3)]);
        let wrong = [pods.patch_status(&own, keys_are_no_texts).await, pods.patch(&own, "{}").await];
        for result in wrong {
            self.log.add(result.err().map_or("done".into(), |error| error.to_string()));
        }
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn unserializable_value_is_not_sent() {
    let (mut world, log) = (World::new(), Log::default());
    let web = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } })).unwrap();
    Api::<ConfigMap>::default_namespaced(world.client.clone()).create(&PostParams::default(), &web).await.unwrap();
    let added = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Wrong { log: added.clone() })))).await;
    advance_seconds(1).await;
    let lines = log.take();
    assert!(lines.len() >= 2, "{lines:?}");
    assert!(lines[0].contains("not sent: the value is not serializable as JSON: "), "{lines:?}");
    assert!(lines[1].contains("not sent: a merge patch is an object"), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("default/own")), "{lines:?}");
    let own = world.pods().get("own").await.unwrap();
    assert_eq!(own.status.and_then(|status| status.message).as_deref(), Some("stays"));
    assert_eq!(world.n_requests("patch", "pods"), 0);
}
