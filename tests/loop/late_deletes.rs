//! Objects that were deleted while their watch lags.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kctl::{
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, CustomResourceExt,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use kctl_tests::Fault;

use crate::world::{Log, With, World, advance_seconds, app, metadata_named, pod};

/// Keeps one Pod, and patches its primary.
#[controller(owns = Pod(create), primary(patch))]
async fn keeper(_config: Arc<ConfigMap>, cx: Context<keeper>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    if pods.is_empty() {
        let metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
        pods.create(Pod { metadata, ..pod("") }).await?;
    }
    cx.patch(kctl::json!({ "metadata": { "annotations": { "seen": "yes" } } })).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn not_found_response_stops_reconciles_before_watch_event() {
    let mut world = World::new();
    world.run_cluster();
    world.set("a", "1").await;
    world.run(app().controller::<keeper>()).await;
    advance_seconds(10).await;
    assert_eq!(world.n_requests("create", "pods"), 1);
    world.stop_reads("configmaps");
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    advance_seconds(600).await;
    assert_eq!(world.n_requests("create", "pods"), 2, "its pod went with it, and was made again once");
}

#[tokio::test(start_paused = true)]
async fn missing_kind_does_not_count_as_deleted_object() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    let app = app().configs({
        let log = log.clone();
        move |config, cx: Context<_>| {
            let log = log.clone();
            async move {
                let pods = cx.owned::<Pod>();
                if !config.data.as_ref().is_some_and(|data| data.values().any(|text| text == "2")) {
                    pods.create(pod("x")).or_get().await?;
                } else if let Some(pod) = pods.iter().next() {
                    let result = pods.delete(&*pod).await;
                    log.add(if result.is_ok() { "deleted" } else { "rejected" });
                    result?;
                }
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    advance_seconds(5).await;
    assert_eq!(world.pod_names().await, ["x"]);
    world.faults.add(Fault::Reject(404), |request| request.method == "DELETE");
    world.set("a", "2").await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(log.take(), ["rejected"]);
    world.faults.clear();
    advance_seconds(5).await;
    assert_eq!(log.take(), ["deleted"], "it was still known");
    assert_eq!(world.pod_names().await, Vec::<String>::new());
}

/// Patches its primary, and logs the number of failures before each attempt.
#[controller(of = ConfigMap, primary(patch))]
struct Stamps {
    log: Log,
}

impl Reconcile for Stamps {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.log.add(cx.attempt().to_string());
        cx.patch(kctl::json!({ "metadata": { "annotations": { "seen": "yes" } } })).await?;
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn plain_not_found_is_a_failure_with_backoff() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    // Like the patch of a subresource that the kind does not have: the response names no object.
    world.faults.add(Fault::Reject(404), |request| request.method == "PATCH");
    let added = log.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Stamps { log: added.clone() })))).await;
    advance_seconds(1).await;
    let attempts = log.take();
    assert_eq!(attempts[..3], ["0", "1", "2"], "{attempts:?}");
}

/// A kind with the name of a built-in one.
mod custom {
    use kctl::prelude::*;

    #[resource(group = "example.com", version = "v1", kind = "ConfigMap", namespaced)]
    pub(super) struct ConfigMapSpec {
        pub(super) text: String,
    }
}

/// A kind with a status, whose CRD in the cluster is older and does not have the subresource.
mod old {
    use kctl::prelude::*;

    #[resource(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
    pub(super) struct SiteSpec {
        pub(super) text: String,
    }

    #[schema]
    pub(super) struct SiteStatus {
        pub(super) seen: String,
    }
}

/// Writes the status of its primary, and logs its text and the number of failures before each attempt.
#[controller(of = old::Site)]
struct Reports {
    log: Log,
}

impl Reconcile for Reports {
    async fn reconcile(&self, site: Arc<old::Site>, cx: Context<Self>) -> Result<Action> {
        self.log.add(format!("{} after {}", site.spec.text, cx.attempt()));
        cx.patch_status(old::SiteStatus { seen: site.spec.text.clone() }).await?;
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn missing_status_subresource_is_not_a_deleted_object() {
    let (mut world, log) = (World::new(), Log::default());
    let mut definition = kctl::json!(old::Site::crd());
    definition["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    let definition: CustomResourceDefinition = kctl::from_json(definition).unwrap();
    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    world.run_cluster();
    advance_seconds(1).await;
    let sites = Api::<old::Site>::default_namespaced(world.client.clone());
    let site = old::Site::new("a", old::SiteSpec { text: "1".into() });
    sites.create(&PostParams::default(), &site).await.unwrap();
    let added = log.clone();
    world.run(App::new("loop").controller_with(move |_| std::future::ready(Ok(Reports { log: added.clone() })))).await;
    advance_seconds(60).await;
    // The server responds as for a missing object. A read shows that it is there, so the attempts are failures.
    let first = log.take();
    assert!(first.contains(&"1 after 3".to_owned()), "{first:?}");
    let patch = Patch::Merge(kctl::json!({ "spec": { "text": "2" } }));
    sites.patch("a", &PatchParams::default(), &patch).await.unwrap();
    advance_seconds(1).await;
    assert!(log.take().contains(&"2 after 0".to_owned()), "it is still in the cache");
}

/// Copies the text of its primary into the built-in object of the same name.
#[controller(of = custom::ConfigMap, reads = ConfigMap(patch))]
struct Copies {
    log: Log,
}

impl Reconcile for Copies {
    async fn reconcile(&self, primary: Arc<custom::ConfigMap>, cx: Context<Self>) -> Result<Action> {
        self.log.add(primary.spec.text.clone());
        if let Some(copy) = cx.store::<ConfigMap>().iter().next() {
            cx.objects::<ConfigMap>().patch(&*copy, kctl::json!({ "data": { "text": primary.spec.text } })).await?;
        }
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn missing_namesake_object_keeps_the_primary() {
    let (mut world, log) = (World::new(), Log::default());
    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    definitions.create(&PostParams::default(), &custom::ConfigMap::crd()).await.unwrap();
    world.run_cluster();
    advance_seconds(1).await;
    world.set("a", "").await;
    let primaries = Api::<custom::ConfigMap>::default_namespaced(world.client.clone());
    let primary = custom::ConfigMap::new("a", custom::ConfigMapSpec { text: "1".into() });
    primaries.create(&PostParams::default(), &primary).await.unwrap();
    world
        .run(App::new("loop").controller_with({
            let log = log.clone();
            move |_| std::future::ready(Ok(Copies { log: log.clone() }))
        }))
        .await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["1"]);
    world.faults.add(Fault::Break, |request| request.reads("configmaps") && request.path.starts_with("/api/"));
    world.faults.cut_watches();
    let copies = Api::<ConfigMap>::default_namespaced(world.client.clone());
    copies.delete("a", &DeleteParams::default()).await.unwrap();
    let patch = |text: &str| Patch::Merge(kctl::json!({ "spec": { "text": text } }));
    primaries.patch("a", &PatchParams::default(), &patch("2")).await.unwrap();
    advance_seconds(1).await;
    assert!(log.take().contains(&"2".to_owned()));
    primaries.patch("a", &PatchParams::default(), &patch("3")).await.unwrap();
    advance_seconds(1).await;
    assert!(log.take().contains(&"3".to_owned()), "the primary is still known");
}

/// Deletes the Namespace `tenant`, and logs its state in the cache after that.
#[controller(of = ConfigMap, reads = Namespace(delete))]
struct Evicts {
    log: Log,
}

impl Reconcile for Evicts {
    async fn reconcile(&self, _: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let tenant = || cx.store::<Namespace>().iter().find(|namespace| namespace.name_any() == "tenant");
        let Some(namespace) = tenant() else { return Ok(Action::await_change()) };
        cx.objects::<Namespace>().delete(&*namespace).await?;
        let state = tenant().map(|namespace| namespace.metadata.deletion_timestamp.is_some());
        self.log.add(format!("{state:?}"));
        Ok(Action::await_change())
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_namespace_is_terminating_until_it_is_empty() {
    let (mut world, log) = (World::new(), Log::default());
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let tenant = Namespace { metadata: metadata_named("tenant"), ..Namespace::default() };
    namespaces.create(&PostParams::default(), &tenant).await.unwrap();
    let evicts = {
        let log = log.clone();
        move |_| std::future::ready(Ok(Evicts { log: log.clone() }))
    };
    world.run(app().controller_with(evicts)).await;
    advance_seconds(1).await;
    world.set("a", "").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["Some(true)"]);
    world.run_cluster();
    advance_seconds(60).await;
    world.set("a", "again").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), Vec::<String>::new(), "it is gone");
}

/// Owns Pods, and counts its cleanups.
#[controller(of = ConfigMap, owns = Pod(create), finalizer = "loop.example.com/tidy")]
struct Tidy {
    n_cleaned: Arc<AtomicUsize>,
}

impl Reconcile for Tidy {
    async fn reconcile(&self, _: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        for name in ["x", "y", "z"] {
            cx.owned::<Pod>().create(pod(name)).or_get().await?;
        }
        Ok(Action::await_change())
    }
}

impl Finalize for Tidy {
    async fn finalize(&self, _: Arc<ConfigMap>, _: Context<Self>) -> Result<()> {
        self.n_cleaned.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn removed_finalizer_is_final_before_the_watch_event() {
    let (mut world, n_cleaned) = (World::new(), Arc::<AtomicUsize>::default());
    world.run_cluster();
    world.set("a", "1").await;
    let counted = n_cleaned.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Tidy { n_cleaned: counted.clone() })))).await;
    advance_seconds(10).await;
    assert_eq!(world.pod_names().await, ["x", "y", "z"]);
    let (faults, deaf) = (world.faults.clone(), Arc::<AtomicBool>::default());
    let is_deaf = deaf.clone();
    world.faults.add(Fault::Break, move |request| is_deaf.load(Ordering::Relaxed) && request.reads("configmaps"));
    world.faults.add(Fault::Break, move |request| {
        if request.method == "PATCH" && !deaf.swap(true, Ordering::Relaxed) {
            faults.cut_watches();
        }
        false
    });
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    advance_seconds(600).await;
    assert_eq!(world.pod_names().await, Vec::<String>::new());
    assert_eq!(n_cleaned.load(Ordering::Relaxed), 1);
}

/// Has a finalizer, and logs its calls.
#[controller(of = ConfigMap, finalizer = "loop.example.com/logged")]
struct Logged {
    log: Log,
}

impl Reconcile for Logged {
    async fn reconcile(&self, _: Arc<ConfigMap>, _: Context<Self>) -> Result<Action> {
        self.log.add("reconcile");
        Ok(Action::await_change())
    }
}

impl Finalize for Logged {
    async fn finalize(&self, _: Arc<ConfigMap>, _: Context<Self>) -> Result<()> {
        self.log.add("finalize");
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn object_deleted_during_finalizer_patch_is_only_finalized() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    let is_patched = AtomicBool::default();
    world.faults.add(Fault::DelayResponse(Duration::from_secs(2)), move |request| {
        request.method == "PATCH" && !is_patched.swap(true, Ordering::Relaxed)
    });
    let added = log.clone();
    world.run(app().controller_with(move |_| std::future::ready(Ok(Logged { log: added.clone() })))).await;
    advance_seconds(1).await;
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(configs.get("a").await.unwrap().metadata.deletion_timestamp.is_some(), "its finalizer was added before");
    advance_seconds(60).await;
    assert_eq!(log.take(), ["finalize"]);
    assert!(configs.get_opt("a").await.unwrap().is_none());
}
