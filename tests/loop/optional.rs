//! Optional kinds: a controller runs without them, sees them once they are installed, and keeps running when they are
//! removed.

use kctl::{
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, CustomResourceExt,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    manager::{View, lease::ElectionConfig},
    prelude::*,
    testing::TestServer,
};
use kctl_runtime::{
    manager::{health::Health, metrics::Metrics},
    manifest::{RbacOptions, rbac},
};

use crate::world::{Log, World, advance_seconds, app, metadata_named};

/// A kind that comes and goes.
#[resource(group = "example.com", version = "v1", kind = "Bulb", namespaced)]
struct BulbSpec {
    on: bool,
}

fn everything(_bulb: &Bulb, secrets: &Store<Secret>) -> Vec<Key<Secret>> {
    secrets.keys()
}

/// Logs the number of bulbs.
#[controller(of = Secret, watches = Bulb(map = everything, optional))]
struct Counter {
    log: Log,
}

impl Reconcile for Counter {
    async fn reconcile(&self, secret: Arc<Secret>, cx: Context<Self>) -> Result<Action> {
        let bulbs = cx.store::<Bulb>();
        assert_eq!(bulbs.is_served(), cx.is_served::<Bulb>());
        let served = if bulbs.is_served() { format!("{} bulbs", bulbs.len()) } else { "not served".into() };
        assert!(bulbs.is_served() || bulbs.is_empty());
        self.log.add(format!("{}: {served}", secret.name_any()));
        Ok(Action::await_change())
    }
}

/// Creates a bulb for each `ConfigMap` if the kind is served.
#[controller(of = ConfigMap, owns = Bulb(optional))]
struct Electrician {
    log: Log,
    /// `true` if the controller checks `is_served` before it creates a bulb.
    asks: bool,
}

impl Reconcile for Electrician {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let bulbs = cx.owned::<Bulb>();
        if !bulbs.is_empty() || (self.asks && !cx.is_served::<Bulb>()) {
            return Ok(Action::await_change());
        }
        let made = bulbs.create(Bulb::new(&config.name_any(), BulbSpec { on: true })).await;
        self.log.add(made.as_ref().map_or_else(ToString::to_string, |bulb| format!("made {}", bulb.name_any())));
        made?;
        Ok(Action::await_change())
    }
}

/// Requires the kind.
#[controller(of = Service, name = "needy", reads = Bulb)]
struct Needy {
    log: Log,
}

impl Reconcile for Needy {
    async fn reconcile(&self, service: Arc<Service>, cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("{}: {} bulbs", service.name_any(), cx.store::<Bulb>().len()));
        Ok(Action::await_change())
    }
}

fn counter(app: App, log: &Log) -> App {
    let log = log.clone();
    app.controller_with(move |_env| std::future::ready(Ok(Counter { log: log.clone() })))
}

fn electrician(log: &Log, asks: bool) -> App {
    let log = log.clone();
    app().controller_with(move |_env| std::future::ready(Ok(Electrician { log: log.clone(), asks })))
}

fn definitions(world: &World) -> Api<CustomResourceDefinition> {
    Api::all(world.client.clone())
}

async fn install(world: &World) {
    definitions(world).create(&PostParams::default(), &Bulb::crd()).await.unwrap();
    advance_seconds(1).await;
}

/// Deletes the CRD. Watches end a second later, as on a real server.
async fn uninstall(world: &World) {
    definitions(world).delete("bulbs.example.com", &DeleteParams::default()).await.unwrap();
    advance_seconds(1).await;
    world.faults.cut_watches();
}

async fn create_bulb(world: &World, name: &str) {
    let bulbs = Api::<Bulb>::default_namespaced(world.client.clone());
    let bulb = Bulb::new(name, BulbSpec { on: true });
    bulbs.patch(name, &PatchParams::apply("test"), &Patch::Apply(bulb)).await.unwrap();
}

fn world() -> World {
    let mut world = World::new();
    world.run_cluster();
    world
}

/// Returns the readiness checks that fail.
fn failing_checks(view: &View) -> Vec<String> {
    let checks = Health::new(view.clone(), Metrics::default()).ready();
    checks.into_iter().filter_map(|check| Some(format!("{}: {}", check.name, check.result.err()?))).collect()
}

#[tokio::test(start_paused = true)]
async fn controller_without_optional_kind_runs_and_is_ready() {
    let (mut world, log) = (world(), Log::default());
    world.create_secret("a").await;
    let view = world.run(counter(app(), &log)).await;
    advance_seconds(3).await;
    assert_eq!(log.take(), ["a: not served"]);
    assert_eq!(failing_checks(&view), Vec::<String>::new());
    assert!(view.is_idle(), "{:?}", view.unfinished_work());
    let source = crate::watch::source_of(&view, "bulbs");
    assert!(source.is_absent() && source.health().failure.is_none(), "an absent kind is not a failure");
    advance_seconds(600).await;
    assert_eq!(log.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn optional_kind_is_watched_only_while_installed() {
    let (mut world, log) = (world(), Log::default());
    world.create_secret("a").await;
    let view = world.run(counter(app(), &log)).await;
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a: not served"]);
    install(&world).await;
    advance_seconds(7).await;
    assert_eq!(log.take(), ["a: 0 bulbs"], "that it is there is a change, too");
    create_bulb(&world, "hall").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: 1 bulbs"]);
    uninstall(&world).await;
    advance_seconds(3).await;
    assert_eq!(failing_checks(&view), Vec::<String>::new(), "also while it is not certain");
    advance_seconds(27).await;
    assert_eq!(log.take().last().unwrap(), "a: not served");
    assert!(view.is_idle(), "{:?}", view.unfinished_work());
    install(&world).await;
    create_bulb(&world, "attic").await;
    advance_seconds(10).await;
    assert_eq!(log.take().last().unwrap(), "a: 1 bulbs");
}

#[tokio::test(start_paused = true)]
async fn installed_optional_kind_is_listed_before_first_reconcile() {
    let (mut world, log) = (world(), Log::default());
    install(&world).await;
    create_bulb(&world, "hall").await;
    world.create_secret("a").await;
    world.run(counter(app(), &log)).await;
    advance_seconds(10).await;
    assert_eq!(log.take(), ["a: 1 bulbs"]);
}

#[tokio::test(start_paused = true)]
async fn owned_optional_objects_are_created_after_installation() {
    let (mut world, log) = (world(), Log::default());
    world.set("a", "1").await;
    world.run(electrician(&log, true)).await;
    advance_seconds(60).await;
    assert_eq!(log.take(), Vec::<String>::new());
    install(&world).await;
    advance_seconds(10).await;
    assert_eq!(log.take(), ["made a"]);
    let bulbs = Api::<Bulb>::default_namespaced(world.client.clone());
    assert_eq!(bulbs.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn write_to_missing_optional_kind_suggests_is_served() {
    let (mut world, log) = (world(), Log::default());
    world.set("a", "1").await;
    world.run(electrician(&log, false)).await;
    advance_seconds(3).await;
    let log_lines = log.take();
    let first = log_lines.first().unwrap();
    assert!(first.contains("create Bulb default/a: not sent") && first.contains("cx.is_served"), "{log_lines:?}");
    install(&world).await;
    advance_seconds(10).await;
    assert_eq!(log.take().last().unwrap(), "made a");
}

#[tokio::test(start_paused = true)]
async fn controller_that_requires_the_kind_delays_no_other() {
    let (mut world, log, needy) = (world(), Log::default(), Log::default());
    world.create_secret("a").await;
    world.create_service("s").await;
    let both = counter(app(), &log).controller_with({
        let log = needy.clone();
        move |_env| std::future::ready(Ok(Needy { log: log.clone() }))
    });
    let view = world.run(both).await;
    advance_seconds(60).await;
    assert_eq!((log.take(), needy.take()), (vec!["a: not served".to_owned()], Vec::new()));
    assert_eq!(failing_checks(&view).len(), 1, "the one that requires it: {:?}", failing_checks(&view));
    install(&world).await;
    advance_seconds(10).await;
    assert_eq!((log.take(), needy.take()), (vec!["a: 0 bulbs".to_owned()], vec!["s: 0 bulbs".to_owned()]));
    assert_eq!(failing_checks(&view), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn test_server_runs_controller_without_optional_kind() {
    let log = Log::default();
    let server = TestServer::start(counter(app(), &log)).await.unwrap();
    let secrets = Api::<Secret>::default_namespaced(server.client());
    secrets
        .create(&PostParams::default(), &Secret { metadata: metadata_named("a"), ..Secret::default() })
        .await
        .unwrap();
    server.idle().await.unwrap();
    assert_eq!(log.take(), ["a: not served"]);
    Api::<CustomResourceDefinition>::all(server.client()).create(&PostParams::default(), &Bulb::crd()).await.unwrap();
    advance_seconds(10).await;
    assert_eq!(log.take(), ["a: 0 bulbs"]);
}

#[test]
fn role_has_optional_kinds_as_all_others() {
    let app = counter(app(), &Log::default());
    let manifests = rbac(&app.specs(), &RbacOptions::default()).unwrap();
    let yaml: String = manifests.into_iter().map(|manifest| manifest.yaml).collect();
    assert!(yaml.contains("bulbs") && yaml.contains("optional"), "{yaml}");
}

/// Each `ConfigMap` gets a bulb once the kind is installed, whatever fails.
#[kctl::test(seeds = 4)]
fn optional_kind_that_comes_later_survives_simulated_faults(
    scenario: kctl::testing::Scenario,
) -> kctl::testing::Scenario {
    scenario
        .app(|| electrician(&Log::default(), true))
        .objects("{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }")
        .step("bulbs are installed", |client| async move {
            Api::<CustomResourceDefinition>::all(client).create(&PostParams::default(), &Bulb::crd()).await?;
            Ok(())
        })
}

#[tokio::test(start_paused = true)]
async fn leader_takes_over_without_its_optional_kind() {
    let (world, log) = (world(), Log::default());
    world.create_secret("a").await;
    let manager = counter(app(), &log).manager(world.faults.client(&world.server)).await.unwrap();
    let manager = manager.elect(ElectionConfig::new("loop", "default", "me")).unwrap();
    let view = manager.view();
    let _running = tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    advance_seconds(20).await;
    assert_eq!(log.take(), ["a: not served"]);
    assert!(crate::watch::source_of(&view, "bulbs").is_absent());
    assert_eq!(failing_checks(&view), Vec::<String>::new());
}
