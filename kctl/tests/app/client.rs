//! The client of a controller with `rbac(…)` has exactly the permissions of these rules.

use kctl::{
    k8s::api::rbac::v1::PolicyRule,
    kube::{Api, api::PostParams},
    prelude::*,
    testing::TestServer,
};

fn namespaces() -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["namespaces".into()]),
        verbs: vec!["create".into()],
        ..PolicyRule::default()
    }
}

/// Creates a namespace named after each `ConfigMap`, and tries to create a `Secret`, for which it has no rule.
#[controller(rbac(namespaces()), retries = 0)]
async fn spaces(config: Arc<ConfigMap>, cx: Context<spaces>) -> Result<Action> {
    let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: metadata.clone(), ..Namespace::default() };
    Api::all(cx.client()).create(&PostParams::default(), &namespace).await?;
    let secret = Secret { metadata, ..Secret::default() };
    let rejected = Api::default_namespaced(cx.client()).create(&PostParams::default(), &secret).await.unwrap_err();
    Err(rejected.into())
}

#[tokio::test(start_paused = true)]
async fn client_may_do_only_what_the_rules_allow() {
    let server = TestServer::start(App::new("spaces").controller::<spaces>()).await.unwrap();
    let metadata = ObjectMeta { name: Some("team-a".into()), ..ObjectMeta::default() };
    let config = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(server.client()).create(&PostParams::default(), &config).await.unwrap();
    server.idle().await.unwrap();
    assert!(Api::<Namespace>::all(server.client()).get_opt("team-a").await.unwrap().is_some());
    assert_eq!(Api::<Secret>::default_namespaced(server.client()).get_opt("team-a").await.unwrap(), None);
}

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

/// Does the same as [`spaces`] on another cluster.
#[controller(rbac(namespaces(), on = Edge), retries = 0)]
async fn spaces_there(config: Arc<ConfigMap>, cx: Context<spaces_there>) -> Result<Action> {
    let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: metadata.clone(), ..Namespace::default() };
    Api::all(cx.cluster(Edge).client()).create(&PostParams::default(), &namespace).await?;
    let secret = Secret { metadata, ..Secret::default() };
    let rejected = Api::default_namespaced(cx.cluster(Edge).client()).create(&PostParams::default(), &secret).await;
    Err(rejected.unwrap_err().into())
}

fn nowhere() -> App {
    App::new("spaces").controller::<spaces_there>()
}

#[tokio::test(start_paused = true)]
async fn client_of_another_cluster_has_its_declared_permissions() {
    let app = nowhere().cluster(Edge::NAME, || async { Err("where is it?".into()) });
    let server = TestServer::start(app).await.unwrap();
    let config: ConfigMap = kctl::from_yaml("{ metadata: { name: team-a } }").unwrap();
    Api::default_namespaced(server.client()).create(&PostParams::default(), &config).await.unwrap();
    server.idle().await.unwrap();
    let edge = server.cluster(Edge::NAME).unwrap();
    assert!(Api::<Namespace>::all(edge.clone()).get_opt("team-a").await.unwrap().is_some());
    assert_eq!(Api::<Secret>::default_namespaced(edge).get_opt("team-a").await.unwrap(), None);
    assert_eq!(Api::<Namespace>::all(server.client()).get_opt("team-a").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn rbac_rule_for_unknown_cluster_fails_startup() {
    let error = TestServer::start(nowhere()).await.err().unwrap().to_string();
    assert!(error.ends_with("there is no cluster `edge`; add it by `App::cluster`"), "{error}");
}
