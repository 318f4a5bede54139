//! `converged = f`: objects in the desired state are not reconciled at the start. Each later change is.

use kctl::{
    kube::{
        Api, ResourceExt,
        api::{DeleteParams, PostParams},
    },
    prelude::*,
};

use crate::world::{Log, World, advance_seconds, app, metadata_named, text};

const FINALIZER: &str = "example.com/converged";

/// Logs its reconciles. Objects with the text `done` are in the desired state.
#[controller(of = ConfigMap, owns = Pod, converged = is_done)]
struct Telling {
    log: Log,
}

fn is_done(config: &ConfigMap, cx: &Context<Telling>) -> bool {
    assert_ne!(text(config), "panics");
    text(config) == "done" && cx.owned::<Pod>().is_empty()
}

impl Reconcile for Telling {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("{} for {}", config.name_any(), cx.reason()));
        Ok(Action::await_change())
    }
}

/// Has a finalizer, and treats all objects as converged.
#[controller(of = ConfigMap, finalizer = "example.com/converged", converged = is_always_done)]
struct Cleaning {
    log: Log,
}

fn is_always_done(_config: &ConfigMap, _cx: &Context<Cleaning>) -> bool {
    true
}

impl Reconcile for Cleaning {
    async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("reconcile {}", config.name_any()));
        Ok(Action::await_change())
    }
}

impl Finalize for Cleaning {
    async fn finalize(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        self.log.add(format!("finalize {}", config.name_any()));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn converged_object_is_reconciled_once_it_changes() {
    let (mut world, log) = (World::new(), Log::default());
    for (name, text) in [("a", "done"), ("b", "to do"), ("c", "panics"), ("d", "done")] {
        world.set(name, text).await;
    }
    let log_of_controller = log.clone();
    let app = app().controller_with(move |_env| std::future::ready(Ok(Telling { log: log_of_controller.clone() })));
    let triggers = app.triggers();
    triggers.trigger::<Telling>(&Key::namespaced("default", "d")).unwrap();
    world.run(app).await;
    advance_seconds(5).await;
    let mut first = log.take();
    first.sort();
    assert_eq!(
        first,
        ["b for initial list", "c for retry", "d for initial list, trigger"],
        "`a` is done, the check of `c` has failed, and a user asked for `d`"
    );
    world.set("a", "to do").await;
    advance_seconds(1).await;
    world.set("a", "done").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a for ConfigMap changed", "a for ConfigMap changed"], "the check is for the start alone");
}

/// Requeues in an hour. Its primaries count as converged once there is a Secret.
#[controller(of = ConfigMap, watches = Secret(map = to_web), converged = has_secret, namespaces = ["a"])]
struct Mapped {
    log: Log,
}

fn to_web(_secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    vec![Key::namespaced("a", "web")]
}

fn has_secret(_config: &ConfigMap, cx: &Context<Mapped>) -> bool {
    cx.store::<Secret>().iter().next().is_some()
}

impl Reconcile for Mapped {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("{} for {}", cx.key(), cx.reason()));
        Ok(Action::requeue(Duration::from_secs(3600)))
    }
}

#[tokio::test(start_paused = true)]
async fn namespace_added_later_reconciles_converged_object() {
    let (mut world, log) = (World::new(), Log::default());
    for name in ["a", "b"] {
        let namespace = Namespace { metadata: metadata_named(name), ..Namespace::default() };
        Api::<Namespace>::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let config = ConfigMap { metadata: metadata_named("web"), ..ConfigMap::default() };
        let configs = Api::<ConfigMap>::namespaced(world.client.clone(), name);
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    let secret = Secret { metadata: metadata_named("of-web"), ..Secret::default() };
    Api::<Secret>::namespaced(world.client.clone(), "b").create(&PostParams::default(), &secret).await.unwrap();
    let told = log.clone();
    let app = app().controller_with(move |_env| std::future::ready(Ok(Mapped { log: told.clone() })));
    let watches = world.run_with_watches(app).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["a/web for initial list"]);
    watches.add_namespace("b").await.unwrap();
    advance_seconds(5).await;
    assert_eq!(log.take(), ["a/web for Secret changed"], "`b/web` is converged and owns no Secret");
    advance_seconds(3600).await;
    assert_eq!(log.take(), ["a/web for requeue"], "its wait was not lost");
}

#[tokio::test(start_paused = true)]
async fn converged_object_still_gets_finalizer_and_cleanup() {
    let (mut world, log) = (World::new(), Log::default());
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    for (name, finalizers) in [("deleted", Some(FINALIZER)), ("new", None), ("old", Some(FINALIZER))] {
        let finalizers = finalizers.map(|finalizer| vec![finalizer.to_owned()]);
        let config = ConfigMap { metadata: ObjectMeta { finalizers, ..metadata_named(name) }, ..ConfigMap::default() };
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    configs.delete("deleted", &DeleteParams::default()).await.unwrap();
    let log_of_controller = log.clone();
    world
        .run(app().controller_with(move |_env| std::future::ready(Ok(Cleaning { log: log_of_controller.clone() }))))
        .await;
    advance_seconds(5).await;
    let mut first = log.take();
    first.sort();
    first.dedup();
    assert_eq!(first, ["finalize deleted", "reconcile new"], "`old` is as it is to be");
    assert_eq!(configs.get("new").await.unwrap().finalizers(), [FINALIZER]);
    configs.delete("old", &DeleteParams::default()).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), ["finalize old"]);
}
