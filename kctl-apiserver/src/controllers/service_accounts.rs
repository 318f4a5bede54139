//! Creates the `default` `ServiceAccount` and the `ConfigMap` `kube-root-ca.crt` in each namespace, and restores them
//! (`serviceaccounts_controller.go` of `pkg/controller/serviceaccount`, `publisher.go` of
//! `pkg/controller/certificates/rootcacertpublisher`).
//!
//! On a cluster, a Pod may be created before the account of its new namespace; the admission plugin
//! waits for it. Here `complete_namespace` creates it first.

use serde_json::{Value, json};

use super::{Controller, Controllers};
use crate::{
    deletion::is_being_deleted,
    kinds::core::{config_map, namespace, service_account},
    lifecycle::Writer,
    registry::kind::Subresource,
    status::GroupResource,
    store::{Event, Key, Store},
};

/// The `ServiceAccount` that Pods get if they do not set `serviceAccountName`.
pub(crate) const DEFAULT_ACCOUNT: &str = "default";
/// The `ConfigMap` with the certificate authority of the server.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";
/// The annotation of the `ConfigMap` that describes its use.
const DESCRIPTION_ANNOTATION: &str = "kubernetes.io/description";
/// The value of the annotation.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
                           the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
                           Kubernetes clusters.";
/// The field manager of these objects.
const WRITER: Writer = Writer::for_manager(Subresource::Main);

/// Returns the namespace that may lack one of its objects after a change. A deleted account or `ConfigMap` is created
/// again, and a changed `ConfigMap` is restored. A changed account is ignored.
pub(super) fn affected_namespace(resource: &GroupResource, event: &Event) -> Option<String> {
    let (namespace, name) = &event.key;
    if namespace::KIND.is_of(resource) {
        return (!event.deleted).then(|| name.clone());
    }
    let is_default_account = event.deleted && name == DEFAULT_ACCOUNT && service_account::KIND.is_of(resource);
    let is_authority = name == ROOT_CA && config_map::KIND.is_of(resource);
    (is_default_account || is_authority).then(|| namespace.clone())
}

/// Returns all namespaces, for a start with existing objects.
pub(super) fn namespaces(store: &Store) -> Vec<String> {
    store
        .objects_of(&namespace::KIND, None)
        .filter_map(|namespace| namespace["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

/// Creates or repairs the missing objects of a namespace. A namespace that is being deleted is skipped. Each of the two
/// objects has its own controller, which may be disabled.
pub(super) fn complete(controllers: &Controllers, store: &mut Store, name: &str) {
    let Some(namespace) = store.object(&namespace::KIND, "", name) else { return };
    if is_being_deleted(&namespace) {
        return;
    }
    if controllers.runs(Controller::ServiceAccount) {
        create_account(store, name);
    }
    // A server that does not listen has no certificate authority and publishes none, like kube-controller-manager
    // without `--root-ca-file`. Tests in one process then have only their own ConfigMaps.
    if let Some(authority) = &controllers.root_ca
        && controllers.runs(Controller::RootCaCertificatePublisher)
    {
        publish(store, name, authority);
    }
}

/// Returns the metadata of a new object. The uid comes from the store's random generator, so that the same seed gives
/// the same objects.
fn metadata(store: &mut Store, namespace: &str, name: &str) -> Value {
    json!({
        "name": name, "namespace": namespace, "uid": store.rng.uid(), "creationTimestamp": store.clock.seconds(),
    })
}

/// Creates the account, unless it exists. It has no fields but its metadata: token Secrets are no longer created for
/// accounts.
fn create_account(store: &mut Store, namespace: &str) {
    let resource = service_account::KIND.group_resource();
    let key: Key = (namespace.to_owned(), DEFAULT_ACCOUNT.to_owned());
    if store.get(&resource, &key).is_some() {
        return;
    }
    let metadata = metadata(store, namespace, DEFAULT_ACCOUNT);
    store.put(&resource, key, json!({ "kind": service_account::KIND.kind, "apiVersion": "v1", "metadata": metadata }));
}

/// Creates the `ConfigMap` with the server's certificate authority, or restores its data and its description. Other
/// annotations are kept.
fn publish(store: &mut Store, namespace: &str, authority: &str) {
    let resource = config_map::KIND.group_resource();
    let key: Key = (namespace.to_owned(), ROOT_CA.to_owned());
    let data = json!({ "ca.crt": authority });
    match store.get(&resource, &key) {
        None => {
            let mut metadata = metadata(store, namespace, ROOT_CA);
            metadata["annotations"] = json!({ DESCRIPTION_ANNOTATION: DESCRIPTION });
            let new = json!({ "kind": config_map::KIND.kind, "apiVersion": "v1", "metadata": metadata, "data": data });
            let new = WRITER.with_managed_fields(store, &resource, new);
            store.put(&resource, key, new);
        }
        Some(existing) if existing["data"] == data && has_description(&existing) => {}
        Some(existing) => {
            let mut new = Value::clone(&existing);
            new["data"] = data;
            new["metadata"]["annotations"][DESCRIPTION_ANNOTATION] = DESCRIPTION.into();
            WRITER.write(store, &resource, &key, &existing, new);
        }
    }
}

/// Returns `true` if the `ConfigMap` has a description, which a user may have written.
fn has_description(config_map: &Value) -> bool {
    config_map["metadata"]["annotations"][DESCRIPTION_ANNOTATION].as_str().is_some_and(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiServer, ControllerOptions};

    async fn moment() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    fn pod(spec: &Value) -> Value {
        let mut pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        pod
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_get_their_account_and_their_certificate_authority() {
        let server = ApiServer::new();
        server.state.lock().core.controllers.root_ca = Some("authority".into());
        tokio::spawn(server.controllers());
        server.send_json("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "n" } })).await;
        moment().await;
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system", "n"] {
            assert!(server.object("", "serviceaccounts", namespace, "default").is_some(), "{namespace}");
            let authority = server.object("", "configmaps", namespace, ROOT_CA).expect(namespace);
            assert_eq!(authority["metadata"]["managedFields"][0]["manager"], "kube-controller-manager", "{namespace}");
        }
        for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            server.send_json("DELETE", &format!("/api/v1/namespaces/n/{path}"), &json!({})).await;
            moment().await;
            let (code, _) = server.send_json("GET", &format!("/api/v1/namespaces/n/{path}"), &Value::Null).await;
            assert_eq!(code, 200, "{path} is there again");
        }
        let mut changed = Value::clone(&server.object("", "configmaps", "n", ROOT_CA).unwrap());
        changed["data"] = json!({ "ca.crt": "x", "more": "y" });
        server.send_json("PUT", "/api/v1/namespaces/n/configmaps/kube-root-ca.crt", &changed).await;
        moment().await;
        assert_eq!(server.object("", "configmaps", "n", ROOT_CA).unwrap()["data"], json!({ "ca.crt": "authority" }));
        server.send_json("DELETE", "/api/v1/namespaces/n", &json!({})).await;
        moment().await;
        assert_eq!(server.object("", "namespaces", "", "n"), None, "what is filled in does not hold a namespace");
    }

    #[tokio::test(start_paused = true)]
    async fn restored_authority_keeps_other_annotations() {
        let server = ApiServer::new();
        server.state.lock().core.controllers.root_ca = Some("authority".into());
        tokio::spawn(server.controllers());
        moment().await;
        let mut changed = Value::clone(&server.object("", "configmaps", "default", ROOT_CA).unwrap());
        changed["metadata"]["annotations"] = json!({ "a": "b" });
        server.send_json("PUT", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", &changed).await;
        moment().await;
        let restored = server.object("", "configmaps", "default", ROOT_CA).unwrap();
        let annotations = json!({ "a": "b", DESCRIPTION_ANNOTATION: DESCRIPTION });
        assert_eq!(restored["metadata"]["annotations"], annotations);
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_listens_nowhere_publishes_no_authority() {
        let server = ApiServer::new();
        tokio::spawn(server.controllers());
        moment().await;
        assert!(server.objects("", "configmaps").is_empty());
        assert!(server.object("", "serviceaccounts", "kube-system", "default").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn server_without_controllers_fills_in_nothing() {
        let server = ApiServer::new();
        moment().await;
        let revision = server.revision();
        let (code, created) = server.send_json("POST", "/api/v1/namespaces/default/pods", &pod(&Value::Null)).await;
        assert_eq!((code, created["spec"].get("serviceAccountName")), (201, None));
        assert_eq!(server.revision(), revision + 1);
        assert!(server.objects("", "serviceaccounts").is_empty());
    }

    /// Expects the responses of kube-apiserver with the plugin `ServiceAccount`.
    #[tokio::test(start_paused = true)]
    async fn pods_get_the_default_account_and_token_volume() {
        let server = ApiServer::new();
        tokio::spawn(server.controllers());
        server.send_json("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "n" } })).await;
        // No time passes: the account exists already for a Pod that is created at once.
        let volume = json!({ "name": "v", "mountPath": "/x" });
        let spec = json!({
            "initContainers": [{ "name": "d", "image": "i", "volumeMounts": [volume] }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
        });
        let (code, created) = server.send_json("POST", "/api/v1/namespaces/n/pods", &pod(&spec)).await;
        assert_eq!(code, 201, "{created}");
        let spec = &created["spec"];
        assert_eq!((&spec["serviceAccountName"], &spec["serviceAccount"]), (&json!("default"), &json!("default")));
        let name = spec["volumes"][1]["name"].as_str().unwrap();
        assert!(name.starts_with("kube-api-access-") && name.len() == 21, "{name}");
        let mount =
            json!({ "name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" });
        assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount]));
        assert_eq!(spec["initContainers"][0]["volumeMounts"], json!([volume, mount]));
        let projected = json!({
            "defaultMode": 420,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                { "configMap": { "items": [{ "key": "ca.crt", "path": "ca.crt" }], "name": "kube-root-ca.crt" } },
                { "downwardAPI": { "items": [
                    { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }, "path": "namespace" },
                ] } },
            ],
        });
        assert_eq!(spec["volumes"][1]["projected"], projected);
        let owned = created["metadata"]["managedFields"].to_string();
        assert!(!owned.contains("kube-api-access") && !owned.contains("serviceAccount"), "{owned}");
    }

    /// Expects the responses of kube-apiserver with the plugin `ServiceAccount`.
    #[tokio::test(start_paused = true)]
    async fn service_account_limits_the_secrets_of_a_pod() {
        let server = ApiServer::new();
        tokio::spawn(server.controllers());
        let account = json!({
            "metadata": { "name": "s", "annotations": { "kubernetes.io/enforce-mountable-secrets": "true" } },
            "automountServiceAccountToken": false,
            "imagePullSecrets": [{ "name": "p" }],
            "secrets": [{ "name": "q" }],
        });
        server.send_json("POST", "/api/v1/namespaces/default/serviceaccounts", &account).await;
        let secret =
            |name: &str| json!([{ "name": "c", "image": "i", "envFrom": [{ "secretRef": { "name": name } }] }]);
        for (spec, rejected) in [
            (json!({ "serviceAccountName": "s" }), None),
            (json!({ "serviceAccountName": "s", "containers": secret("q") }), None),
            (json!({ "serviceAccountName": "nope" }), Some("nope")),
            (json!({ "serviceAccountName": "s", "containers": secret("z") }), Some("\"z\"")),
            (json!({ "serviceAccountName": "s", "imagePullSecrets": [{ "name": "z" }] }), Some("\"z\"")),
        ] {
            let path = "/api/v1/namespaces/default/pods?dryRun=All";
            let (code, response) = server.send_json("POST", path, &pod(&spec)).await;
            let Some(name) = rejected else {
                assert_eq!(
                    (code, &response["spec"]["imagePullSecrets"]),
                    (201, &json!([{ "name": "p" }])),
                    "{response}"
                );
                assert_eq!(response["spec"].get("volumes"), None, "no token is mounted");
                continue;
            };
            assert!(
                code == 403 && response["message"].to_string().replace('\\', "").contains(name),
                "{code} {response}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn controllers_that_are_left_out_do_nothing() {
        let server = ApiServer::new();
        let options = ControllerOptions::default().without(Controller::GarbageCollector).without(Controller::Namespace);
        tokio::spawn(server.controllers_with(&options));
        let configs = "/api/v1/namespaces/default/configmaps";
        let (_, owner) = server.send_json("POST", configs, &json!({ "metadata": { "name": "a" } })).await;
        let reference =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"] });
        let owned = json!({ "metadata": { "name": "b", "ownerReferences": [reference] } });
        server.send_json("POST", configs, &owned).await;
        server.send_json("DELETE", &format!("{configs}/a"), &json!({})).await;
        server.send_json("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "n" } })).await;
        server.send_json("DELETE", "/api/v1/namespaces/n", &json!({})).await;
        moment().await;
        assert!(server.object("", "configmaps", "default", "b").is_some());
        let namespace = server.object("", "namespaces", "", "n").expect("the namespace is not deleted");
        assert_eq!(namespace["status"]["phase"], "Terminating");
        assert_eq!(server.pending(), 0);
    }
}
