//! The chain of a control plane: what is applied to it is in force, and what is removed is not.

use std::time::Duration;

use kctl::{
    interpreter::{
        chain::{Chain, ChainError, Place},
        kind::Gvk,
        operation::{InterpretHealth, InterpretReplica, Object, Operation},
        registry::Registry,
    },
    json,
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api,
        api::{DeleteParams, DynamicObject, PostParams},
        core::{ApiResource, GroupVersionKind},
    },
    prelude::*,
    testing::TestServer,
};

/// Does nothing: the chain is what is looked at.
#[controller]
async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    Ok(Action::await_change())
}

fn api(server: &TestServer, kind: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("config.karmada.io", "v1alpha1", kind));
    Api::all_with(server.client(), &kind)
}

async fn create(api: &Api<DynamicObject>, object: kctl::Json) {
    api.create(&PostParams::default(), &kctl::from_json(object).unwrap()).await.unwrap();
}

fn customization(name: &str, kind: &str, replicas: &str) -> kctl::Json {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": name },
        "spec": {
            "target": { "apiVersion": "apps/v1", "kind": kind },
            "customizations": { "replicaResource": { "luaScript": format!("function GetReplicas(o) {replicas} end") } },
        },
    })
}

fn object(kind: &str) -> Object {
    Object(json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "web" }, "spec": { "replicas": 1 } }))
}

async fn replicas(chain: &Registry, kind: &str) -> Result<i32, ChainError> {
    chain.interpret::<InterpretReplica>(object(kind)).await.map(|answer| answer.replicas)
}

/// The definitions of what a chain follows.
fn definitions() -> Vec<CustomResourceDefinition> {
    let kinds = App::new("chained").interpreter_kinds().kinds();
    kctl::manifest::definitions(&kinds, kctl::manifest::Descriptions::Own).unwrap()
}

/// Events take a moment to arrive.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn customizations_and_webhooks_of_the_control_plane_are_in_force_while_they_are_there() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let server = TestServer::start(app).await.unwrap();
    settle().await;
    assert!(chain.is_ready());
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 1);

    let customizations = api(&server, "ResourceInterpreterCustomization");
    create(&customizations, customization("a", "Deployment", "return 5, nil")).await;
    create(&customizations, customization("b", "Deployment", "return 6, nil")).await;
    create(&customizations, customization("c", "StatefulSet", "return")).await;
    create(&customizations, customization("d", "ReplicaSet", "retrn")).await;
    settle().await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 5);
    assert!(replicas(&chain, "StatefulSet").await.is_err(), "it returns no number, and is final");
    let error = replicas(&chain, "ReplicaSet").await.unwrap_err();
    assert!(matches!(error, ChainError::LayerFailed { place: Place::Configurable, .. }), "{error}");

    customizations.delete("a", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 6);

    let configurations = api(&server, "ResourceInterpreterWebhookConfiguration");
    let configuration = json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": { "name": "hooks" },
        "webhooks": [{
            "name": "w.example.com", "clientConfig": { "service": { "namespace": "default", "name": "hooks", "port": 443 } },
            "rules": [{ "operations": ["InterpretHealth"], "apiGroups": ["apps"], "apiVersions": ["*"], "kinds": ["Deployment"] }],
            "interpreterContextVersions": ["v1alpha1"],
        }],
    });
    create(&configurations, configuration).await;
    let services: Api<kctl::k8s::api::core::v1::Service> = Api::namespaced(server.client(), "default");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "hooks" },
        "spec": { "ports": [{ "port": 8443 }] },
    });
    services.create(&PostParams::default(), &kctl::from_json(service).unwrap()).await.unwrap();
    settle().await;
    let error = chain.interpret::<InterpretHealth>(object("Deployment")).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.ends_with("failed to call webhook: no service port 443 found for service \"hooks\""), "{cause}");
    configurations.delete("hooks", &DeleteParams::default()).await.unwrap();
    settle().await;
    let kind = Gvk { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() };
    assert!(chain.hook_enabled(Operation::InterpretHealth, &kind), "the built-in rule is left");
    let error = chain.interpret::<InterpretHealth>(object("Deployment")).await;
    assert!(!matches!(error, Err(ChainError::LayerFailed { place: Place::Webhook, .. })), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn control_plane_without_the_kinds_has_the_other_rules_soon_and_theirs_once_it_has_them() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let server = TestServer::start(app).await.unwrap();
    let installed: Api<CustomResourceDefinition> = Api::all(server.client());
    for definition in definitions() {
        installed.delete(&definition.name_any(), &DeleteParams::default()).await.unwrap();
    }
    // The same app on a control plane that was never different.
    let chain = Arc::new(Registry::new(Chain::native()));
    let app = App::new("chained").controller::<idle>().interpreter_chain(&chain);
    let manager = app.manager(server.client()).await.unwrap();
    tokio::spawn(async move { manager.run(std::future::pending()).await.unwrap() });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!chain.is_ready(), "an API server that starts does not have them either");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 1);

    for definition in definitions() {
        installed.create(&PostParams::default(), &definition).await.unwrap();
    }
    settle().await;
    let customizations = api(&server, "ResourceInterpreterCustomization");
    create(&customizations, customization("a", "Deployment", "return 5, nil")).await;
    // A kind that is not there is looked for every five seconds.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(replicas(&chain, "Deployment").await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_role_of_the_app_allows_what_the_chain_reads() {
    let chain = Arc::new(Registry::new(Chain::native()));
    let read = |app: &App| -> Vec<String> {
        let mut specs = app.specs();
        // The chain reads in all namespaces, whichever the first controller is for.
        specs[0].namespaces = vec!["a".into()];
        let all = kctl::manifest::grants(&specs, "");
        all.iter().filter(|grant| grant.place == kctl::manifest::Place::Everywhere).map(ToString::to_string).collect()
    };
    let app = || App::new("chained").controller::<idle>();
    assert!(read(&app()).is_empty());
    let expected = [
        "list services",
        "watch services",
        "list resourceinterpretercustomizations.config.karmada.io",
        "watch resourceinterpretercustomizations.config.karmada.io",
        "list resourceinterpreterwebhookconfigurations.config.karmada.io",
        "watch resourceinterpreterwebhookconfigurations.config.karmada.io",
    ];
    assert_eq!(read(&app().interpreter_chain(&chain)), expected);
}
