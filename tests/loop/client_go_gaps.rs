//! Cases that client-go's tests lack: states lost between two pages of a list, and objects that leave a selector.

use kctl::{
    kube::{
        Api,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    manager::View,
    prelude::*,
};
use kctl_tests::Fault;
use parking_lot::Mutex;

use crate::{
    deployments_controller::controlled_by,
    script::log_changes,
    watch::source_of,
    world::{Log, With, World, advance_seconds, app, pod, text},
};

/// More objects than fit on a page.
const N_CONFIGS: usize = 505;

/// Creates a world with many `ConfigMap`s, whose server only lists in pages.
async fn many_configs() -> World {
    let world = World::in_pages();
    for n in 0..N_CONFIGS {
        world.set(&format!("config-{n:03}"), "1").await;
    }
    world
}

fn delay_second_pages(world: &World) {
    world.faults.add(Fault::Delay(Duration::from_secs(10)), |request| request.query.contains("continue="));
}

/// Changes objects on both sides of the page boundary, and compacts the history.
async fn change_and_compact(world: &World) {
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("config-504", &DeleteParams::default()).await.unwrap();
    world.set("config-000", "2").await;
    world.set("new", "1").await;
    world.server.compact();
}

fn check_configs(view: &View) {
    let configs: Store<ConfigMap> = Store::new(source_of(view, "configmaps").store().clone());
    assert_eq!(configs.len(), N_CONFIGS);
    let of = |name: &str| configs.get(&Key::namespaced("default", name)).map(|config| text(&config));
    assert_eq!([of("config-000"), of("config-504"), of("new")], [Some("2".into()), None, Some("1".into())]);
}

#[tokio::test(start_paused = true)]
async fn compaction_between_pages_restarts_the_first_list() {
    let mut world = many_configs().await;
    delay_second_pages(&world);
    let log = Log::default();
    let app = app().configs({
        let log = log.clone();
        move |config, _| {
            log.add(format!("{} {}", config.name_any(), text(&config)));
            async { Ok(Action::await_change()) }
        }
    });
    let view = world.run(app).await;
    advance_seconds(5).await;
    change_and_compact(&world).await;
    world.faults.clear();
    advance_seconds(60).await;
    check_configs(&view);
    let lines = log.take();
    assert_eq!(lines.len(), N_CONFIGS, "each is reconciled once");
    assert!(!lines.iter().any(|line| line == "config-000 1" || line.starts_with("config-504")));
    assert_eq!(world.n_requests("list", "configmaps"), 4, "two pages, one of them rejected, and two more");
}

#[tokio::test(start_paused = true)]
async fn relist_across_compaction_reports_changes_only() {
    let mut world = many_configs().await;
    let view = world.run(app().configs(|_, _| async { Ok(Action::await_change()) })).await;
    advance_seconds(5).await;
    let log = Log::default();
    source_of(&view, "configmaps").store().subscribe(log_changes(&log)).await.wait_until_delivered().await;
    log.take();
    world.stop_reads("configmaps");
    world.set("config-001", "2").await;
    world.server.compact();
    world.faults.clear();
    delay_second_pages(&world);
    advance_seconds(5).await;
    assert_eq!(
        world.n_requests("list", "configmaps"),
        4,
        "a look at the version, and the first page of the second list"
    );
    change_and_compact(&world).await;
    world.faults.clear();
    advance_seconds(60).await;
    check_configs(&view);
    let names: Vec<_> = log.take().iter().map(|line| line.split('@').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(names, ["-config-504", "~config-000", "~config-001", "+new"]);
}

static OWNED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Owns Pods with this label.
#[controller(name = "labelled", owns = Pod(selector = "app=web"))]
async fn labelled(_deployment: Arc<Deployment>, cx: Context<labelled>) -> Result<Action> {
    let names: Vec<_> = cx.owned::<Pod>().iter().map(|pod| pod.name_any()).collect();
    OWNED.lock().push(names.join(" "));
    Ok(Action::await_change())
}

async fn label(world: &World, value: Option<&str>) {
    let patch = Patch::Merge(kctl::json!({ "metadata": { "labels": { "app": value } } }));
    world.pods().patch("web-0", &PatchParams::default(), &patch).await.unwrap();
}

fn seen() -> Vec<String> {
    std::mem::take(&mut *OWNED.lock())
}

#[tokio::test(start_paused = true)]
async fn object_outside_of_the_selector_counts_as_deleted() {
    let mut world = World::new();
    let deployment = world.create_deployment("web").await;
    let mut pod = pod("web-0");
    pod.metadata.owner_references = Some(vec![controlled_by(&deployment)]);
    pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    world.pods().create(&PostParams::default(), &pod).await.unwrap();
    world.run(app().controller::<labelled>()).await;
    advance_seconds(5).await;
    assert_eq!(seen(), ["web-0"]);
    // The Pod leaves the selector first while the watch is open, and later while it is interrupted.
    label(&world, None).await;
    advance_seconds(5).await;
    assert_eq!(seen(), [""]);
    label(&world, Some("web")).await;
    advance_seconds(5).await;
    assert_eq!(seen(), ["web-0"]);
    world.stop_reads("pods");
    label(&world, Some("other")).await;
    world.server.compact();
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(seen(), [""]);
    // Changes of an object outside of the selector are not seen.
    world.pods().delete("web-0", &DeleteParams::default()).await.unwrap();
    advance_seconds(60).await;
    assert_eq!(seen(), [""; 0]);
}

static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Owns Pods with a label, and creates one without it.
#[controller(name = "astray", owns = Pod(create, selector = "app=web"))]
async fn astray(_deployment: Arc<Deployment>, cx: Context<astray>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    let result = if pods.is_empty() { pods.create(pod("plain")).await.map(drop) } else { Ok(()) };
    MADE.lock().push(format!("{} {result:?}", pods.len()));
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn own_write_outside_selector_leaves_cache() {
    let mut world = World::new();
    world.create_deployment("web").await;
    let view = world.run(app().controller::<astray>()).await;
    advance_seconds(5).await;
    assert_eq!(*MADE.lock(), ["0 Ok(())", "1 Ok(())"], "it reads its own write");
    // The next event or bookmark of the watch removes the Pod, which does not match the selector, from the cache.
    world.create_pod_of("other", &[]).await;
    let mut other = pod("matches");
    other.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    world.pods().create(&PostParams::default(), &other).await.unwrap();
    advance_seconds(5).await;
    let names: Vec<_> = source_of(&view, "pods").store().all().iter().map(|pod| pod.meta().name().to_owned()).collect();
    assert_eq!(names, ["matches"]);
    assert!(MADE.lock()[2].starts_with("0 Err(") && MADE.lock()[2].contains("AlreadyExists"), "{:?}", MADE.lock());
}
