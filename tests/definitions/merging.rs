//! Lists of built-in types in a custom kind: appliers own their items separately, as in Pods.

use kctl::{
    Json,
    apiserver::ApiServer,
    json,
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, Client,
        api::{ListParams, Patch, PatchParams, PostParams},
    },
    manifest::{Descriptions, KindSpec, definitions},
    prelude::*,
};

#[resource(group = "example.com", version = "v1", kind = "Fleetlet", namespaced)]
pub(crate) struct FleetletSpec {
    template: kctl::k8s::api::core::v1::PodTemplateSpec,
}

/// Returns the apply configuration with a single container.
fn with_container(name: &str, port: i32) -> Json {
    let container = json!({ "name": name, "ports": [{ "containerPort": port }] });
    json!({
        "apiVersion": "example.com/v1", "kind": "Fleetlet", "metadata": { "name": "one" },
        "spec": { "template": { "spec": { "containers": [container] } } },
    })
}

#[tokio::test]
async fn two_appliers_share_the_containers_of_a_template() {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in definitions(&[KindSpec::of::<Fleetlet>()], Descriptions::Own).unwrap() {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
    let fleetlets = Api::<Fleetlet>::default_namespaced(client);
    while fleetlets.list(&ListParams::default()).await.is_err() {
        tokio::task::yield_now().await;
    }
    for (applier, port) in [("web", 80), ("side", 81)] {
        let applied = Patch::Apply(with_container(applier, port));
        fleetlets.patch("one", &PatchParams::apply(applier), &applied).await.unwrap();
    }
    let spec = fleetlets.get("one").await.unwrap().spec.template.spec.unwrap();
    let ports = |container: &kctl::k8s::api::core::v1::Container| {
        let port = container.ports.as_ref().and_then(|ports| ports.first()).cloned().unwrap_or_default();
        (container.name.clone(), port.container_port, port.protocol)
    };
    let found: Vec<_> = spec.containers.iter().map(ports).collect();
    let tcp = || Some("TCP".to_owned());
    assert_eq!(
        found,
        [("web".to_owned(), 80, tcp()), ("side".to_owned(), 81, tcp())],
        "a key that is left out has its default"
    );
}
