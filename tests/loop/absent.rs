//! Kinds that are not installed yet or no longer: CRDs are created and deleted while the program runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use kctl::{
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, CustomResourceExt,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use kctl_tests::Fault;

use crate::world::{Log, With, World, advance_seconds, app, metadata_named};

/// A kind that comes and goes.
#[resource(group = "example.com", version = "v1", kind = "Lamp", namespaced)]
struct LampSpec {
    on: bool,
}

/// Logs which lamps are on.
#[controller(of = Lamp, owns = ConfigMap)]
struct Lamps {
    log: Log,
}

impl Reconcile for Lamps {
    async fn reconcile(&self, lamp: Arc<Lamp>, cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("{} {}", cx.key().name(), if lamp.spec.on { "on" } else { "off" }));
        Ok(Action::await_change())
    }
}

/// Creates a lamp for each Secret.
#[controller(of = Secret, owns = Lamp)]
struct Electrician {
    log: Log,
}

impl Reconcile for Electrician {
    async fn reconcile(&self, secret: Arc<Secret>, cx: Context<Self>) -> Result<Action> {
        if cx.owned::<Lamp>().is_empty() {
            self.log.add(format!("makes {}", secret.name_any()));
            cx.owned::<Lamp>().create(Lamp::new(&secret.name_any(), LampSpec { on: true })).await?;
        }
        Ok(Action::await_change())
    }
}

fn definitions(world: &World) -> Api<CustomResourceDefinition> {
    Api::all(world.client.clone())
}

async fn install(world: &World) {
    definitions(world).create(&PostParams::default(), &Lamp::crd()).await.unwrap();
    advance_seconds(1).await;
}

/// Deletes the CRD. Watches end a second later, as on a real server.
async fn uninstall(world: &World) {
    definitions(world).delete("lamps.example.com", &DeleteParams::default()).await.unwrap();
    advance_seconds(1).await;
    world.faults.cut_watches();
}

async fn create_lamp(world: &World, name: &str, on: bool) {
    let lamp = Lamp::new(name, LampSpec { on });
    let lamps = Api::<Lamp>::default_namespaced(world.client.clone());
    lamps.patch(name, &PatchParams::apply("test"), &Patch::Apply(lamp)).await.unwrap();
}

fn lamps(log: &Log) -> App {
    let log = log.clone();
    app().controller_with(move |_env| std::future::ready(Ok(Lamps { log: log.clone() })))
}

/// Counts the manager's requests for lamps from now on.
fn counter(world: &World) -> Arc<AtomicUsize> {
    let counter = Arc::<AtomicUsize>::default();
    let counts = counter.clone();
    world.faults.add(Fault::Break, move |request| {
        counts.fetch_add(usize::from(request.path.contains("lamps")), Ordering::Relaxed);
        false
    });
    counter
}

/// Returns a world whose controllers complete the deletion of CRDs.
fn world() -> World {
    let mut world = World::new();
    world.run_cluster();
    world
}

#[tokio::test(start_paused = true)]
async fn crd_installed_later_starts_its_controllers_within_seconds() {
    let (mut world, log) = (world(), Log::default());
    let requests = counter(&world);
    world.run(lamps(&log)).await;
    advance_seconds(3600).await;
    let n_requests = requests.load(Ordering::Relaxed);
    assert!(
        (576..=720).contains(&n_requests),
        "{n_requests} requests in an hour: one every five seconds, and a quarter more"
    );
    install(&world).await;
    create_lamp(&world, "hall", true).await;
    advance_seconds(6).await;
    assert_eq!(log.take(), ["hall on"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_crd_stops_its_controllers_until_it_returns() {
    let (mut world, log) = (world(), Log::default());
    install(&world).await;
    for n in 0..50 {
        create_lamp(&world, &format!("lamp-{n:02}"), true).await;
    }
    let view = world.run(lamps(&log)).await;
    advance_seconds(5).await;
    assert_eq!(log.take().len(), 50);
    let requests = counter(&world);
    uninstall(&world).await;
    advance_seconds(600).await;
    assert_eq!(log.take(), Vec::<String>::new());
    let n_requests = requests.load(Ordering::Relaxed);
    assert!(n_requests <= 125, "{n_requests} requests in ten minutes: nothing but the question whether it is back");
    let source = crate::watch::source_of(&view, "lamps");
    assert_eq!((source.store().len(), source.store().is_synced()), (0, false));
    assert_eq!(source.health().failure.and_then(|failure| failure.code()), Some(404));
    install(&world).await;
    create_lamp(&world, "hall", false).await;
    advance_seconds(10).await;
    assert_eq!(log.take(), ["hall off"]);
    assert!(view.is_idle());
}

#[tokio::test(start_paused = true)]
async fn controller_pauses_while_its_owned_kind_is_missing() {
    let (mut world, log) = (world(), Log::default());
    install(&world).await;
    let app = app().controller_with({
        let log = log.clone();
        move |_env| std::future::ready(Ok(Electrician { log: log.clone() }))
    });
    world.run(app).await;
    advance_seconds(5).await;
    definitions(&world).delete("lamps.example.com", &DeleteParams::default()).await.unwrap();
    advance_seconds(1).await;
    for name in ["attic", "hall"] {
        world.create_secret(name).await;
    }
    advance_seconds(600).await;
    assert_eq!(log.take(), Vec::<String>::new(), "the watch ended with the definition: nothing is tried");
    install(&world).await;
    advance_seconds(10).await;
    let mut seen = log.take();
    seen.sort();
    assert_eq!(seen, ["makes attic", "makes hall"]);
    let lamps = Api::<Lamp>::default_namespaced(world.client.clone());
    assert_eq!(lamps.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn brief_404_of_a_kind_causes_no_deletes() {
    let (mut world, log) = (world(), Log::default());
    world.set("a", "1").await;
    let view = world
        .run(app().configs({
            let log = log.clone();
            move |config, _| {
                log.add(config.name_any());
                async { Ok(Action::await_change()) }
            }
        }))
        .await;
    advance_seconds(5).await;
    log.take();
    let store = crate::watch::source_of(&view, "configmaps").store().clone();
    let changes = Log::default();
    store.subscribe(crate::script::log_changes(&changes)).await.wait_until_delivered().await;
    changes.take();
    world.faults.add(Fault::Reject(404), |request| request.reads("configmaps"));
    world.faults.cut_watches();
    advance_seconds(3).await;
    assert_eq!(
        (store.len(), store.is_synced()),
        (1, false),
        "the known objects are kept, and no controller acts on them"
    );
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs
        .create(&PostParams::default(), &ConfigMap { metadata: metadata_named("b"), ..ConfigMap::default() })
        .await
        .unwrap();
    world.faults.clear();
    advance_seconds(10).await;
    assert_eq!(changes.take().len(), 1, "the one that is new");
    assert_eq!(log.take(), ["b"]);
}

/// Treats all objects as converged, and logs those that it reconciles.
#[controller(of = ConfigMap, converged = is_fine)]
struct Trusting {
    log: Log,
}

fn is_fine(_config: &ConfigMap, _cx: &Context<Trusting>) -> bool {
    true
}

impl Reconcile for Trusting {
    async fn reconcile(&self, config: Arc<ConfigMap>, _: Context<Self>) -> Result<Action> {
        self.log.add(config.name_any());
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn change_during_a_brief_404_is_reconciled() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    world.set("b", "1").await;
    let logged = log.clone();
    world.run(app().controller_with(move |_env| std::future::ready(Ok(Trusting { log: logged.clone() })))).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), Vec::<String>::new());
    world.faults.add(Fault::Reject(404), |request| request.reads("configmaps"));
    world.faults.cut_watches();
    advance_seconds(3).await;
    world.set("a", "2").await;
    world.faults.clear();
    advance_seconds(10).await;
    assert_eq!(log.take(), ["a"]);
}
