//! Kinds that an app only watches or reads: a test server installs their CRDs if their Rust types have one.

use crate::gate::{GATES, gated};
use kctl::{
    kube::{
        Api,
        api::{ListParams, PostParams},
    },
    prelude::*,
    testing::{Scenario, Sim, TestServer},
};

/// A kind of another program.
#[resource(group = "other.example.com", version = "v1", kind = "Zone", namespaced)]
pub(crate) struct ZoneSpec {
    /// Its name.
    pub name: String,
}

/// A cluster-scoped kind of that program.
#[resource(group = "other.example.com", version = "v1", kind = "Region")]
pub(crate) struct RegionSpec {
    /// Its name.
    pub name: String,
}

fn all(_zone: &Zone, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    configs.keys()
}

/// Writes the number of zones and regions to a label.
#[controller(watches = Zone(map = all), reads = Region, primary(patch))]
async fn counts(config: Arc<ConfigMap>, cx: Context<counts>) -> Result<Action> {
    let n = format!("{}-{}", cx.store::<Zone>().len(), cx.store::<Region>().len());
    if config.labels().get("zones") != Some(&n) {
        cx.patch(kctl::json!({ "metadata": { "labels": { "zones": n } } })).await?;
    }
    Ok(Action::await_change())
}

async fn create_config(server: &TestServer) -> Api<ConfigMap> {
    let configs = Api::<ConfigMap>::default_namespaced(server.client());
    let metadata = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
    configs.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    configs
}

#[tokio::test(start_paused = true)]
async fn test_server_installs_watched_and_read_kinds() {
    let server = TestServer::start(App::new("counts").controller::<counts>()).await.unwrap();
    let configs = create_config(&server).await;
    let zone = Zone::new("a", ZoneSpec { name: "a".into() });
    Api::default_namespaced(server.client()).create(&PostParams::default(), &zone).await.unwrap();
    server.idle().await.unwrap();
    assert_eq!(configs.get("web").await.unwrap().labels()["zones"], "1-0");
}

#[tokio::test(start_paused = true)]
async fn undefined_kind_fails_at_once_with_the_remedy() {
    let app = || App::new("gated").controller::<gated>();
    let error = TestServer::start(app()).await.expect_err("the server has no such kind").to_string();
    let (what, help) = (
        "`reads = Gate` needs the kind Gate of other.example.com/v1, which the API server does not have",
        "help: add `.kind::<Gate>()` to the app, or give `TestServer::start_with` its CustomResourceDefinition",
    );
    assert!(error.contains(what) && error.ends_with(help), "{error}");
    let server = TestServer::start_with(app(), GATES).await.unwrap();
    create_config(&server).await;
    server.idle().await.unwrap();
}

#[test]
fn simulation_without_a_kind_fails_with_the_remedy() {
    let scenario = || Scenario::new(|| App::new("gated").controller::<gated>());
    let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}";
    let error = Sim::seeds(0..1).run(&scenario().objects(config)).expect_err("the server has no such kind").to_string();
    let (what, help) = (
        "`reads = Gate` needs the kind Gate of other.example.com/v1, which the API server does not have",
        "help: add `.kind::<Gate>()` to the app, or its CustomResourceDefinition with `Scenario::objects`",
    );
    assert!(error.contains(what) && error.contains(help), "{error}");
    let report = Sim::seeds(0..1).run(&scenario().objects(GATES).objects(config)).unwrap();
    assert!(report.failure().is_none(), "{:?}", report.failure());
}

#[controller(reads = Zone(optional))]
async fn works_without(_config: Arc<ConfigMap>, cx: Context<works_without>) -> Result<Action> {
    let _n = cx.store::<Zone>().len();
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn test_server_installs_optional_kind_only_when_defined() {
    let app = || App::new("works").controller::<works_without>();
    for (app, is_installed) in [(app(), false), (app().kind::<Zone>(), true)] {
        let server = TestServer::start(app).await.unwrap();
        create_config(&server).await;
        server.idle().await.unwrap();
        let zones = Api::<Zone>::default_namespaced(server.client());
        assert_eq!(zones.list(&ListParams::default()).await.is_ok(), is_installed);
    }
}
