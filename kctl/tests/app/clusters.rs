//! One kind on several clusters: each handle reads and writes the cluster that it names.

use kctl::{
    k8s::{
        api::rbac::v1::PolicyRule,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps},
    },
    kube::{
        Api, Client,
        api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::TestServer,
};
use kctl_runtime::manifest::permissions;

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}
struct North;
impl Cluster for North {
    const NAME: &'static str = "north";
}

fn of_that_name(secret: &Secret, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    configs.keys().into_iter().filter(|key| key.name() == secret.name_any()).collect()
}

/// Copies the Secret of the same name from the edge cluster, counts the Secrets of all three clusters, and labels the
/// Secret in the north cluster.
#[controller(
    owns = Secret(create),
    watches = Secret(map = of_that_name, on = Edge),
    watches = Secret(patch, map = of_that_name, on = North),
    reads = ServiceAccount(live, on = North),
    primary(patch)
)]
async fn copies(config: Arc<ConfigMap>, cx: Context<copies>) -> Result<Action> {
    let (edge, north) = (cx.cluster(Edge), cx.cluster(North));
    let key: Key<Secret> = Key::from_object(&*config).object().clone().into();
    if let Some(there) = edge.store::<Secret>().get(&key)
        && cx.owned::<Secret>().is_empty()
    {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        cx.owned::<Secret>().create(Secret { metadata, data: there.data.clone(), ..Secret::default() }).await?;
    }
    for secret in north.store::<Secret>().iter().filter(|secret| secret.name_any() == config.name_any()) {
        let mark = kctl::json!({ "metadata": { "labels": { "seen": "true" } } });
        north.objects::<Secret>().patch(&secret, mark).await?;
    }
    let account = north.live::<ServiceAccount>().get_opt("builder").await?;
    let counts = [cx.store::<Secret>().len(), edge.store::<Secret>().len(), north.store::<Secret>().len()];
    let data = kctl::json!({ "counts": format!("{counts:?}"), "builder": account.is_some().to_string() });
    cx.patch(kctl::json!({ "data": data })).await?;
    Ok(Action::await_change())
}

/// Reconciles `ServiceAccount`s of the edge cluster and owns Secrets there.
#[controller(owns = Secret(create), reads = Secret(on = North), primary(selector = "team=edge", on = Edge), name = "at-the-edge")]
async fn at_the_edge(account: Arc<ServiceAccount>, cx: Context<at_the_edge>) -> Result<Action> {
    if cx.owned::<Secret>().is_empty() {
        let name = format!("{}-of-{}", account.name_any(), cx.cluster(North).store::<Secret>().len());
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        cx.owned::<Secret>().create(Secret { metadata, ..Secret::default() }).await?;
        cx.event(Normal, "Created", "its secret");
    }
    Ok(Action::await_change())
}

async fn unused() -> Result<kctl::kube::Client> {
    Err("a test has its own servers".into())
}

fn app() -> App {
    App::new("copies")
        .controller::<copies>()
        .controller::<at_the_edge>()
        .cluster(Edge::NAME, unused)
        .cluster(North::NAME, unused)
}

fn secret(name: &str, data: &str) -> Secret {
    kctl::from_yaml(&format!("{{ metadata: {{ name: {name} }}, stringData: {{ of: {data} }} }}")).unwrap()
}

async fn names(secrets: &Api<Secret>) -> Vec<String> {
    let mut names: Vec<_> = secrets.list(&ListParams::default()).await.unwrap().items;
    names.sort_by_key(ResourceExt::name_any);
    names.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn each_handle_reads_and_writes_its_own_cluster() {
    let server = TestServer::start(app()).await.unwrap();
    let on = |name| server.cluster(name).unwrap();
    let here = Api::<Secret>::default_namespaced(server.client());
    let (edge, north) = (Api::<Secret>::default_namespaced(on("edge")), Api::<Secret>::default_namespaced(on("north")));
    let configs = Api::<ConfigMap>::default_namespaced(server.client());
    let metadata = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
    configs.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    server.idle().await.unwrap();
    assert!(names(&here).await.is_empty());

    for (place, name) in [(&north, "other"), (&edge, "web"), (&north, "web")] {
        place.create(&PostParams::default(), &secret(name, "edge")).await.unwrap();
    }
    server.idle().await.unwrap();
    assert_eq!(here.get("web").await.unwrap().data, edge.get("web").await.unwrap().data);
    assert_eq!(north.get("web").await.unwrap().labels().get("seen").map(String::as_str), Some("true"));
    assert!(edge.get("web").await.unwrap().labels().is_empty(), "the one at the edge is not marked");
    let data = configs.get("web").await.unwrap().data.unwrap();
    assert_eq!((data["counts"].as_str(), data["builder"].as_str()), ("[1, 1, 2]", "false"));

    let metadata = ObjectMeta { name: Some("builder".into()), ..ObjectMeta::default() };
    let account = ServiceAccount { metadata, ..ServiceAccount::default() };
    Api::default_namespaced(on("north")).create(&PostParams::default(), &account).await.unwrap();
    let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "again": "1" } } }));
    configs.patch("web", &PatchParams::default(), &label).await.unwrap();
    server.idle().await.unwrap();
    assert_eq!(configs.get("web").await.unwrap().data.unwrap()["builder"], "true");
}

#[tokio::test(start_paused = true)]
async fn owned_objects_and_events_use_primary_cluster() {
    let server = TestServer::start(app()).await.unwrap();
    let edge = server.cluster("edge").unwrap();
    let account: ServiceAccount = kctl::from_yaml("{ metadata: { name: builder, labels: { team: edge } } }").unwrap();
    Api::default_namespaced(edge.clone()).create(&PostParams::default(), &account).await.unwrap();
    server.idle().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(names(&Api::default_namespaced(edge.clone())).await, ["builder-of-0"]);
    assert!(names(&Api::default_namespaced(server.client())).await.is_empty());
    let events = Api::<kctl::k8s::api::events::v1::Event>::default_namespaced(edge);
    let recorded = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(recorded.iter().filter_map(|event| event.reason.as_deref()).collect::<Vec<_>>(), ["Created"]);
}

#[test]
fn each_cluster_has_a_separate_role() {
    let specs = app().specs();
    let check = |cluster: &str, expected: &[&str]| {
        let texts: Vec<_> = permissions(&specs, cluster).iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected, "on {cluster:?}");
    };
    check(
        "",
        &[
            "list configmaps",
            "patch configmaps",
            "watch configmaps",
            "create secrets",
            "list secrets",
            "watch secrets",
            "create events.events.k8s.io",
            "patch events.events.k8s.io",
        ],
    );
    check(
        "edge",
        &[
            "create secrets",
            "list secrets",
            "watch secrets",
            "list serviceaccounts",
            "watch serviceaccounts",
            "create events.events.k8s.io",
            "patch events.events.k8s.io",
        ],
    );
    check("north", &["list secrets", "patch secrets", "watch secrets", "get serviceaccounts"]);
}

/// Allows applies of `ConfigMap`s.
fn apply_configs() -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["configmaps".into()]),
        verbs: vec!["create".into(), "patch".into()],
        ..PolicyRule::default()
    }
}

/// Reconciles `ServiceAccount`s of the edge cluster. Its Secrets are in the default cluster.
#[controller(primary(selector = "team=edge", on = Edge), reads = Secret(live), rbac(apply_configs()), name = "from-the-edge")]
async fn from_the_edge(account: Arc<ServiceAccount>, cx: Context<from_the_edge>) -> Result<Action> {
    let name = account.name_any();
    let secret = cx.live::<Secret>().get_opt(&name).await?;
    let config = kctl::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "found": secret.is_some().to_string() },
    });
    let configs = Api::<ConfigMap>::default_namespaced(cx.client());
    configs.patch(&name, &PatchParams::apply("from-the-edge"), &Patch::Apply(config)).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn requests_without_on_go_where_the_role_is() {
    let app = App::new("from-the-edge").controller::<from_the_edge>().cluster(Edge::NAME, unused);
    let texts = |cluster| permissions(&app.specs(), cluster).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(""), ["get secrets"]);
    assert_eq!(texts("edge")[..2], ["create configmaps", "patch configmaps"]);
    let server = TestServer::start(app).await.unwrap();
    let (here, edge) = (server.client(), server.cluster("edge").unwrap());
    Api::default_namespaced(here.clone()).create(&PostParams::default(), &secret("builder", "here")).await.unwrap();
    let account: ServiceAccount = kctl::from_yaml("{ metadata: { name: builder, labels: { team: edge } } }").unwrap();
    Api::default_namespaced(edge.clone()).create(&PostParams::default(), &account).await.unwrap();
    server.idle().await.unwrap();
    let config = Api::<ConfigMap>::default_namespaced(edge).get("builder").await.unwrap();
    assert_eq!(config.data.unwrap()["found"], "true", "the Secret is read from the default cluster");
    assert!(Api::<ConfigMap>::default_namespaced(here).get_opt("builder").await.unwrap().is_none());
}

/// Never runs, because its cluster has no client.
#[controller(reads = Secret(on = Edge), name = "lost")]
async fn lost(_config: Arc<ConfigMap>, _cx: Context<lost>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn unknown_cluster_is_named_at_the_start() {
    let error = TestServer::start(App::new("lost").controller::<lost>()).await.err().unwrap().to_string();
    assert!(error.ends_with("there is no cluster `edge`; add it by `App::cluster`"), "{error}");
}

/// Its level may be anything on the servers of the test.
#[resource(group = "example.com", version = "v1", kind = "Gauge", namespaced)]
struct GaugeSpec {
    level: u8,
}

/// Reconciles `ServiceAccount`s of the edge cluster and reads Gauges of both clusters.
#[controller(primary(on = Edge), reads = Gauge(on = Edge), reads = Gauge, name = "levels")]
async fn levels(_account: Arc<ServiceAccount>, _cx: Context<levels>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Changes the CRD so that it accepts any spec, and creates a Gauge that the type can't read.
async fn create_unreadable(client: &Client, name: &str) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let mut definition = definitions.get("gauges.example.com").await.unwrap();
    let schema = definition.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    let anything = JSONSchemaProps { x_kubernetes_preserve_unknown_fields: Some(true), ..JSONSchemaProps::default() };
    schema.properties.as_mut().unwrap().insert("spec".into(), anything);
    definitions.replace("gauges.example.com", &PostParams::default(), &definition).await.unwrap();
    let gauge = kctl::json!({
        "apiVersion": "example.com/v1", "kind": "Gauge", "metadata": { "name": name }, "spec": { "level": 300 },
    });
    let gauges = Api::<DynamicObject>::default_namespaced_with(client.clone(), &ApiResource::erase::<Gauge>(&()));
    gauges.create(&PostParams::default(), &serde_json::from_value(gauge).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unreadable_object_is_reported_in_its_primarys_cluster() {
    let app = App::new("levels").controller::<levels>().cluster(Edge::NAME, unused);
    let server = TestServer::start(app).await.unwrap();
    let clients = [server.client(), server.cluster("edge").unwrap()];
    for (client, name) in clients.iter().zip(["here", "there"]) {
        create_unreadable(client, name).await;
    }
    server.idle().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut recorded = Vec::new();
    for client in clients {
        let events = Api::<kctl::k8s::api::events::v1::Event>::default_namespaced(client);
        let events = events.list(&ListParams::default()).await.unwrap().items;
        recorded.push(events.into_iter().filter_map(|event| event.regarding?.name).collect::<Vec<_>>());
    }
    assert_eq!(recorded, [vec![], vec!["there".to_owned()]]);
}
