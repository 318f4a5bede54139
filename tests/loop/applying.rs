//! Server-side apply of owned and of other objects: their owner references, and applies that are skipped because
//! nothing would change.

use kctl::{
    k8s::apimachinery::pkg::apis::meta::v1::OwnerReference,
    kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
};

use crate::{
    deployments_controller::controlled_by,
    world::{Log, World, advance_seconds, app, metadata_named, text},
};

/// Ways to write a Service. The `ConfigMap` selects one.
const WAYS: [&str; 3] = ["create", "apply", "converge"];

/// Owns a Service that has additional owner references.
#[controller(of = ConfigMap, owns = Service)]
struct Owner {
    given: Vec<OwnerReference>,
    log: Log,
}

impl Reconcile for Owner {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let services = cx.owned::<Service>();
        let mut service = service("web");
        service.metadata.owner_references = Some(self.given.clone()).filter(|given| !given.is_empty());
        let done = match text(&config).as_str() {
            "create" => services.create(service).or_get().await.map(drop),
            "apply" => services.apply(service).await.map(drop),
            "converge" => services.converge([service]).await.map(drop),
            _ => return Ok(Action::await_change()),
        };
        self.log.add(done.err().map_or("done".into(), |error| error.to_string()));
        Ok(Action::await_change())
    }
}

fn service(name: &str) -> Service {
    let spec = kctl::json!({ "ports": [{ "port": 80 }], "selector": { "app": name } });
    Service { metadata: metadata_named(name), spec: Some(kctl::from_json(spec).unwrap()), ..Service::default() }
}

fn services(world: &World) -> Api<Service> {
    Api::default_namespaced(world.client.clone())
}

async fn run_owner(world: &mut World, given: &[OwnerReference]) -> Log {
    let (given, log) = (given.to_vec(), Log::default());
    let made = log.clone();
    world
        .run(
            app()
                .controller_with(move |_env| std::future::ready(Ok(Owner { given: given.clone(), log: made.clone() }))),
        )
        .await;
    log
}

/// Creates a Secret, and returns an owner reference to it.
async fn add_secret(world: &World, name: &str) -> OwnerReference {
    world.create_secret(name).await;
    let secret = Api::<Secret>::default_namespaced(world.client.clone()).get(name).await.unwrap();
    controlled_by(&secret)
}

#[tokio::test(start_paused = true)]
async fn given_owner_is_kept_with_the_controller_reference() {
    for way in WAYS {
        let mut world = World::new();
        let version = OwnerReference { controller: None, ..add_secret(&world, "v1").await };
        world.set("a", way).await;
        let log = run_owner(&mut world, &[version]).await;
        advance_seconds(5).await;
        let lines = log.take();
        assert!(!lines.is_empty() && lines.iter().all(|line| line == "done"), "{way}: {lines:?}");
        let owners = services(&world).get("web").await.unwrap().metadata.owner_references.unwrap_or_default();
        let owners: Vec<_> = owners.iter().map(|owner| (owner.name.as_str(), owner.controller)).collect();
        assert_eq!(owners, [("v1", None), ("a", Some(true))], "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn second_controller_is_rejected_with_what_to_write() {
    for way in WAYS {
        let mut world = World::new();
        let version = add_secret(&world, "v1").await;
        world.set("a", way).await;
        let log = run_owner(&mut world, &[version]).await;
        advance_seconds(5).await;
        let lines = log.take();
        let verb = if way == "create" { "create" } else { "apply" };
        let expected = format!(
            "{verb} Service default/web: Service default/web (controlled by v1) is not controlled by ConfigMap default/a: an object \
             has one controller; leave `controller` out of the owner reference to v1, or write the object by `cx.objects`, which \
             adds no reference"
        );
        assert_eq!(lines, [expected], "{way}");
        assert!(services(&world).get_opt("web").await.unwrap().is_none(), "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn blocking_reference_to_the_primary_remains_blocking() {
    for way in WAYS {
        let mut world = World::new();
        world.set("a", "").await;
        let config = Api::<ConfigMap>::default_namespaced(world.client.clone()).get("a").await.unwrap();
        let own = OwnerReference { block_owner_deletion: Some(true), ..controlled_by(&config) };
        run_owner(&mut world, &[own]).await;
        world.set("a", way).await;
        advance_seconds(5).await;
        let owners = services(&world).get("web").await.unwrap().metadata.owner_references.unwrap_or_default();
        assert_eq!(owners.iter().map(|owner| owner.block_owner_deletion).collect::<Vec<_>>(), [Some(true)], "{way}");
    }
}

/// Triggers a reconcile by an annotation that does not affect the written objects.
async fn annotate(world: &World, n: usize) {
    let patch = Patch::Merge(kctl::json!({ "metadata": { "annotations": { "n": n.to_string() } } }));
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.patch("a", &PatchParams::default(), &patch).await.unwrap();
    advance_seconds(5).await;
}

#[tokio::test(start_paused = true)]
async fn unchanged_apply_sends_nothing() {
    for way in ["apply", "converge"] {
        let mut world = World::new();
        let version = OwnerReference { controller: None, ..add_secret(&world, "v1").await };
        world.set("a", way).await;
        run_owner(&mut world, &[version]).await;
        advance_seconds(5).await;
        assert_eq!(world.n_requests("patch", "services"), 1, "{way}");
        for n in 0..3 {
            annotate(&world, n).await;
        }
        assert_eq!(world.n_requests("patch", "services"), 1, "{way}: nothing would change");
        // Another writer changes a field, and then removes the owner references.
        for patch in [
            kctl::json!({ "spec": { "selector": { "app": "other" } } }),
            kctl::json!({ "metadata": { "ownerReferences": null } }),
        ] {
            let before = world.n_requests("patch", "services");
            services(&world).patch("web", &PatchParams::default(), &Patch::Merge(patch.clone())).await.unwrap();
            advance_seconds(5).await;
            annotate(&world, 9).await;
            assert_eq!(world.n_requests("patch", "services"), before + 2, "{way}: {patch}");
        }
        let service = services(&world).get("web").await.unwrap();
        assert_eq!(service.owner_references().len(), 2, "{way}");
        assert_eq!(service.spec.and_then(|spec| spec.selector?.get("app").cloned()).as_deref(), Some("web"), "{way}");
    }
}

/// Applies a Service without an owner, in the primary's namespace or in the one that the `ConfigMap` names.
#[controller(of = ConfigMap, reads = Service(apply))]
struct Publisher {
    log: Log,
}

impl Reconcile for Publisher {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let mut service = service("web");
        service.metadata.namespace = Some(text(&config)).filter(|namespace| !namespace.is_empty());
        service.metadata.labels = Some([("color".to_owned(), "red".to_owned())].into());
        let applied = cx.objects::<Service>().apply(service).await;
        self.log.add(applied.map_or_else(|error| error.to_string(), |service| service.name_any()));
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn apply_without_owner_writes_once_and_keeps_owners() {
    let (mut world, log) = (World::new(), Log::default());
    let made = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Publisher { log: made.clone() })))).await;
    world.set("a", "").await;
    advance_seconds(5).await;
    let rejected = log.take();
    assert!(rejected.len() == 1 && rejected[0].contains("the object has no metadata.namespace"), "{rejected:?}");
    world.set("a", "default").await;
    for n in 0..3 {
        annotate(&world, n).await;
    }
    assert_eq!(log.take(), ["web"; 4]);
    assert_eq!(world.n_requests("patch", "services"), 1);
    assert!(services(&world).get("web").await.unwrap().owner_references().is_empty());
    let owner = kctl::json!({ "metadata": { "ownerReferences": [add_secret(&world, "s").await] } });
    services(&world).patch("web", &PatchParams::default(), &Patch::Merge(owner)).await.unwrap();
    let other = kctl::json!({ "metadata": { "labels": { "color": "blue" } } });
    services(&world).patch("web", &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    annotate(&world, 4).await;
    let service = services(&world).get("web").await.unwrap();
    assert_eq!(service.labels().get("color").map(String::as_str), Some("red"), "what was changed is applied again");
    assert_eq!(service.owner_references().len(), 1, "and nothing else");
}

/// Owns `ConfigMap`s of a cluster-scoped primary, and names no namespace.
#[controller(of = Namespace, owns = ConfigMap)]
struct ClusterOwner {
    log: Log,
}

impl Reconcile for ClusterOwner {
    async fn reconcile(&self, namespace: Arc<Namespace>, cx: Context<Self>) -> Result<Action> {
        if namespace.name_any() == "team" {
            let configs = cx.owned::<ConfigMap>();
            let config = ConfigMap { metadata: metadata_named("web"), ..ConfigMap::default() };
            for done in [
                configs.create(config.clone()).await.map(drop),
                configs.apply(&config).await.map(drop),
                configs.converge([&config]).await.map(drop),
            ] {
                let error = done.err().ok_or("it was done")?;
                assert!(error.is_terminal());
                self.log.add(error.to_string());
            }
        }
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn missing_namespace_under_cluster_scoped_primary_is_named() {
    let (mut world, log) = (World::new(), Log::default());
    let team = Namespace { metadata: metadata_named("team"), ..Namespace::default() };
    Api::<Namespace>::all(world.client.clone()).create(&PostParams::default(), &team).await.unwrap();
    let made = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(ClusterOwner { log: made.clone() })))).await;
    advance_seconds(5).await;
    let expected = ["create", "apply", "apply"].map(|verb| {
        format!(
            "{verb} ConfigMap web: not sent: the object has no metadata.namespace, and the primary Namespace is \
             cluster-scoped: set it, or declare the kind Namespace `namespaced`"
        )
    });
    assert_eq!(log.take(), expected);
}

/// Creates a `ConfigMap` in the namespace that is its primary.
#[controller(of = Namespace, owns = ConfigMap)]
struct DefaultSettings {
    log: Log,
}

impl Reconcile for DefaultSettings {
    async fn reconcile(&self, namespace: Arc<Namespace>, cx: Context<Self>) -> Result<Action> {
        if namespace.name_any() == "default" {
            let metadata = ObjectMeta { namespace: Some("default".into()), ..metadata_named("web") };
            for _ in 0..2 {
                let config = ConfigMap { metadata: metadata.clone(), ..ConfigMap::default() };
                let config = cx.owned::<ConfigMap>().create(config).or_get().await;
                self.log.add(config.map_or_else(|error| error.to_string(), |config| config.name_any()));
            }
        }
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn or_get_uses_namespace_of_the_object() {
    let (mut world, log) = (World::new(), Log::default());
    let made = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(DefaultSettings { log: made.clone() })))).await;
    advance_seconds(5).await;
    let lines = log.take();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line == "web"), "{lines:?}");
}

/// Applies a Secret through the handle of Services.
#[controller(of = ConfigMap, reads = Service(apply))]
struct Mistaken {
    log: Log,
}

impl Reconcile for Mistaken {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let metadata = ObjectMeta { namespace: Some("default".into()), ..metadata_named("web") };
        let applied = cx.objects::<Service>().apply(Secret { metadata, ..Secret::default() }).await;
        self.log.add(applied.map_or_else(|error| error.to_string(), |service| service.name_any()));
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn apply_of_another_kind_names_its_handle() {
    let (mut world, log) = (World::new(), Log::default());
    let made = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Mistaken { log: made.clone() })))).await;
    world.set("a", "").await;
    advance_seconds(5).await;
    let expected = "apply Service default/web: not sent: the object has kind Secret (v1), and this handle is for Service \
                    (v1): declare and use `cx.objects::<Secret>()`";
    assert_eq!(log.take(), [expected]);
}

/// Applies a Deployment with quantities that the API server normalizes.
#[controller(of = ConfigMap, owns = Deployment)]
struct Sized;

impl Reconcile for Sized {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let container = kctl::json!({
            "name": "main", "image": "nginx", "resources": { "requests": { "cpu": "1000m", "memory": "1024Mi" } },
        });
        let deployment = kctl::json!({
            "metadata": { "name": "web" },
            "spec": {
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [container] } },
            },
        });
        cx.owned::<Deployment>().apply(deployment).await?;
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn server_normalized_quantities_cause_no_repeated_apply() {
    let mut world = World::new();
    world.set("a", "").await;
    world.run(app().controller_with(|_env| std::future::ready(Ok(Sized)))).await;
    advance_seconds(5).await;
    let status = Patch::Merge(kctl::json!({ "status": { "observedGeneration": 1 } }));
    world.deployments().patch_status("web", &PatchParams::default(), &status).await.unwrap();
    // Another writer adds a container to a list. One more apply is sent, and finds that nothing changes.
    let other = kctl::json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": [{ "name": "sidecar", "image": "proxy" }] } } },
    });
    let before = world.n_requests("patch", "deployments");
    world.deployments().patch("web", &PatchParams::apply("injector"), &Patch::Apply(other)).await.unwrap();
    for n in 0..4 {
        annotate(&world, n).await;
    }
    let made = world.n_requests("patch", "deployments") - before;
    assert_eq!(made, 2, "the injector's, and one that finds that nothing would change");
    // The server may have pruned a field that its schema has since.
    advance_seconds(600).await;
    for n in 4..6 {
        annotate(&world, n).await;
    }
    let made = world.n_requests("patch", "deployments") - before;
    assert_eq!(made, 3, "it is sent again after ten minutes, once");
}

/// Converges two Services. With `colored` both get a label, and the label of the second one is invalid.
#[controller(of = ConfigMap, owns = Service)]
struct Pair;

impl Reconcile for Pair {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let (mut first, mut second) = (service("first"), service("second"));
        if text(&config) == "colored" {
            first.metadata.labels = Some([("color".to_owned(), "red".to_owned())].into());
            second.metadata.labels = Some([("color".to_owned(), "not a label value".to_owned())].into());
        }
        cx.owned::<Service>().converge([first, second]).await?;
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn rollback_after_failed_converge_removes_its_fields() {
    let mut world = World::new();
    world.set("a", "").await;
    world.run(app().controller_with(|_env| std::future::ready(Ok(Pair)))).await;
    advance_seconds(5).await;
    for (text, color) in [("colored", Some("red")), ("", None)] {
        world.set("a", text).await;
        advance_seconds(5).await;
        let first = services(&world).get("first").await.unwrap();
        assert_eq!(first.labels().get("color").map(String::as_str), color, "{text:?}");
        assert!(services(&world).get("second").await.unwrap().labels().is_empty(), "{text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn object_in_another_namespace_is_applied_there() {
    let (mut world, log) = (World::new(), Log::default());
    let elsewhere = kctl::from_json(kctl::json!({ "metadata": { "name": "elsewhere" } })).unwrap();
    Api::<Namespace>::all(world.client.clone()).create(&PostParams::default(), &elsewhere).await.unwrap();
    world.set("a", "elsewhere").await;
    let made = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Publisher { log: made.clone() })))).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["web"]);
    let there = Api::<Service>::namespaced(world.client.clone(), "elsewhere");
    assert!(there.get_opt("web").await.unwrap().is_some());
}
