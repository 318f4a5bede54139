//! Ends and failed starts of trials on an embedded API server that rejects some of the requests.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kctl_apiserver::{
    ApiServer, User,
    faults::{Faults, Moment, RequestFault, Rule},
};

use super::*;
use crate::prelude::{Action, Arc, Context, controller};

/// Adds a label to each `ConfigMap`.
#[controller(crate = crate, primary(patch))]
async fn labels(_config: Arc<ConfigMap>, cx: Context<labels>) -> Result<Action> {
    cx.patch(crate::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    Ok(Action::await_change())
}

/// Owns each `Secret`, and does nothing.
#[controller(crate = crate, owns = Secret)]
async fn keys(_config: Arc<ConfigMap>, _cx: Context<keys>) -> Result<Action> {
    Ok(Action::await_change())
}

/// The name of the namespace and the role.
const NAME: &str = "trial";

/// Returns an administrator's client. The server answers its requests with this verb, resource and name with 500.
fn rejecting(server: &ApiServer, verb: &'static str, resource: &'static str, name: &'static str) -> Client {
    let faults = Faults::seeded(0);
    let fault = RequestFault::Reject { code: 500, retry_after: None, moment: Moment::Before };
    faults.add(Rule::request(fault, move |request| {
        (request.verb, request.resource.as_str(), request.name.as_str()) == (verb, resource, name)
    }));
    Client::new(server.faulty(User::admin(), &faults.connection("trial")), "default")
}

async fn prepare(client: Client, tasks: &mut JoinSet<()>) -> Result<RealServer> {
    let app = App::new("labels").controller::<labels>();
    let permissions = app.permissions().remove("").unwrap();
    RealServer::prepare(client, &app, NAME, "", &permissions, tasks).await
}

/// Returns the kinds whose trial object still exists on a server. A namespace that is being deleted does not count.
async fn left(server: &ApiServer) -> Vec<&'static str> {
    let client = Client::new(server.service(), "default");
    let space = Api::<Namespace>::all(client.clone()).get_opt(NAME).await.unwrap();
    let role = Api::<ClusterRole>::all(client.clone()).get_opt(NAME).await.unwrap();
    let binding = Api::<ClusterRoleBinding>::all(client).get_opt(NAME).await.unwrap();
    let space = space.filter(|space| space.metadata.deletion_timestamp.is_none());
    let kinds = [space.map(|_| "Namespace"), role.map(|_| "ClusterRole"), binding.map(|_| "ClusterRoleBinding")];
    kinds.into_iter().flatten().collect()
}

const ALL: [&str; 3] = ["Namespace", "ClusterRole", "ClusterRoleBinding"];

#[tokio::test(start_paused = true)]
async fn failed_deletion_does_not_prevent_the_others() {
    let cases = [
        ("configmaps", "b", &[][..], "/api/v1/namespaces/trial/configmaps/b: "),
        ("namespaces", NAME, &ALL[..1], "namespace trial: "),
        ("clusterroles", NAME, &ALL[1..2], "ClusterRole trial: "),
        ("clusterrolebindings", NAME, &ALL[2..], "ClusterRoleBinding trial: "),
    ];
    for (resource, name, stays, message) in cases {
        let (server, mut tasks) = (ApiServer::new(), JoinSet::new());
        let trial = prepare(rejecting(&server, "delete", resource, name), &mut tasks).await.unwrap();
        let configs = Api::<ConfigMap>::default_namespaced(trial.client.clone());
        for name in ["a", "b", "c"] {
            let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
            configs.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
        }
        assert_eq!(left(&server).await, ALL);
        let error = trial.end().await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("the end of a trial: {message}")), "{error}");
        assert_eq!(left(&server).await, stays, "{error}");
        let configs = Api::<ConfigMap>::namespaced(Client::new(server.service(), "default"), NAME);
        let names = configs
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .filter_map(|config| config.metadata.name);
        let expected = if resource == "configmaps" { vec!["b".to_owned()] } else { Vec::new() };
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_start_leaves_nothing_behind() {
    for (verb, resource) in [("patch", "clusterroles"), ("patch", "clusterrolebindings")] {
        let (server, mut tasks) = (ApiServer::new(), JoinSet::new());
        let error = prepare(rejecting(&server, verb, resource, NAME), &mut tasks).await.err().unwrap().to_string();
        assert!(error.contains(resource) || error.contains("ClusterRole"), "{error}");
        assert_eq!(left(&server).await, [""; 0], "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn unserved_kind_is_reported_with_the_last_error() {
    let (server, kind) = (ApiServer::new(), Kind::of::<ConfigMap>());
    let error = wait_for_kind(&rejecting(&server, "list", "configmaps", ""), &kind).await.unwrap_err().to_string();
    let (begin, end) = error.split_once(" is not served after 30s: ").unwrap();
    assert_eq!(begin, kind.to_string());
    assert!(!end.is_empty(), "{error}");
    wait_for_kind(&rejecting(&server, "list", "secrets", ""), &kind).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn owned_kind_with_a_crd_is_waited_for() {
    let (server, app) = (ApiServer::new(), App::new("keys").controller::<keys>());
    let definition = |version: &str| -> CustomResourceDefinition {
        let versions = crate::json!([{ "name": version, "served": true, "storage": true }]);
        let names = crate::json!({ "kind": "Secret", "plural": "secrets" });
        let spec = crate::json!({ "group": "", "names": names, "scope": "Namespaced", "versions": versions });
        serde_json::from_value(crate::json!({ "metadata": { "name": "secrets" }, "spec": spec })).unwrap()
    };
    let client = rejecting(&server, "list", "secrets", "");
    let error = wait_for_kinds(&client, &app, &[definition("v1")]).await.unwrap_err().to_string();
    assert!(error.contains(" is not served after 30s: "), "{error}");
    wait_for_kinds(&client, &app, &[definition("v2")]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn role_that_is_not_granted_is_named() {
    let server = ApiServer::new();
    let permissions = App::new("labels").controller::<labels>().permissions().remove("").unwrap();
    let admin = Client::new(server.service(), "default");
    let nobody = as_account(admin, NAME, &Rejections::new(permissions.clone())).unwrap();
    let error = wait_for(&nobody, &permissions).await.unwrap_err().to_string();
    assert!(error.starts_with("the server does not grant the role of a trial after 30s: `"), "{error}");
    assert!(error.contains("patch configmaps`"), "{error}");
}
