//! A deleted and recreated object is another object: a write that was meant for the old one is rejected.

use kctl::{
    kube::{
        Api,
        api::{DeleteParams, PostParams},
    },
    prelude::*,
};

use crate::world::{Log, World, advance_seconds, app, metadata_named, text};

/// Performs the write that the `ConfigMap` `go` names, and logs its outcome.
#[controller(of = Deployment, owns = Secret, watches = ConfigMap(map = every), primary(scale, patch))]
struct Writing {
    log: Log,
}

fn every(_config: &ConfigMap, all: &Store<Deployment>) -> Vec<Key<Deployment>> {
    all.keys()
}

impl Reconcile for Writing {
    async fn reconcile(&self, _deployment: Arc<Deployment>, cx: Context<Self>) -> Result<Action> {
        let (owned, secret) = (cx.owned::<Secret>(), kctl::json!({ "metadata": { "name": "s" } }));
        let changed = kctl::json!({ "metadata": { "name": "s", "labels": { "mine": "yes" } } });
        let go = cx.store::<ConfigMap>().iter().find(|config| config.name_any() == "go");
        let result = match go.map(|go| text(&go)).as_deref() {
            None => return owned.converge([secret]).await.map(|_| Action::await_change()).map_err(Into::into),
            Some("apply") => owned.apply(&changed).await.map(drop),
            Some("converge") => owned.converge([changed]).await.map(drop),
            Some("scale") => cx.scale(7).await,
            Some("patch") => cx.patch(kctl::json!({ "metadata": { "labels": { "mine": "yes" } } })).await.map(drop),
            Some(_) => return Ok(Action::await_change()),
        };
        self.log.add(match &result {
            Ok(()) => "done".to_owned(),
            Err(error) if error.is_conflict() => "conflict".to_owned(),
            Err(error) => error.to_string(),
        });
        result?;
        Ok(Action::await_change())
    }
}

/// Has the controller perform one write before its watches deliver that the objects were recreated.
async fn write(what: &str, makes_anew: bool) -> (World, Log) {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let made = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Writing { log: made.clone() })))).await;
    advance_seconds(1).await;
    world.stop_reads("secrets");
    world.stop_reads("deployments");
    let secrets = Api::<Secret>::default_namespaced(world.client.clone());
    secrets.delete("s", &DeleteParams::default()).await.unwrap();
    if makes_anew {
        secrets
            .create(&PostParams::default(), &Secret { metadata: metadata_named("s"), ..Secret::default() })
            .await
            .unwrap();
    }
    world.deployments().delete("web", &DeleteParams::default()).await.unwrap();
    world.create_deployment("web").await;
    world.set("go", what).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    (world, log)
}

#[tokio::test(start_paused = true)]
async fn write_to_recreated_object_conflicts_then_retries() {
    for what in ["apply", "converge", "scale", "patch"] {
        let (world, log) = write(what, true).await;
        assert_eq!(log.take(), ["conflict"], "{what}");
        let secret = Api::<Secret>::default_namespaced(world.client.clone()).get("s").await.unwrap();
        assert!(secret.metadata.owner_references.is_none() && secret.metadata.labels.is_none(), "{what}: {secret:?}");
        let web = world.deployments().get("web").await.unwrap();
        assert!(web.spec.replicas == Some(1) && web.metadata.labels.is_none(), "{what}: {web:?}");
        world.faults.clear();
        advance_seconds(60).await;
        assert_eq!(log.take().last().map(String::as_str), Some("done"), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn apply_to_deleted_object_conflicts_until_cache_updates() {
    for what in ["apply", "converge"] {
        let (world, log) = write(what, false).await;
        assert_eq!(log.take(), ["conflict"], "{what}");
        world.faults.clear();
        advance_seconds(60).await;
        assert_eq!(log.take().last().map(String::as_str), Some("done"), "{what}");
        assert!(Api::<Secret>::default_namespaced(world.client.clone()).get_opt("s").await.unwrap().is_some());
    }
}
