//! The rules of the built-in kinds, one file each: `kinds/<group>/<kind>.rs` has a `static KIND`.
//!
//! A kind is added by its file and the `mod` line of its group. Fields that it does not name are as in
//! [`Kind::DEFAULT`]. The code that handles requests rarely names a kind. It reads the static of the requested
//! resource instead:
//!
//! | part of a request | part of `Kind`, with some of its fields |
//! |---|---|
//! | admission plugins | `admission` |
//! | decoding and defaults | `defaults`: `decode_error`, `set`, `later` |
//! | creation and update | `strategy`: `prepare_create`, `prepare_update`, `new_status`; `metadata`: `names`, `generation` |
//! | field ownership | `managed_fields`: `filled_in`, `unowned`, `owned_state`, `reset_fields` |
//! | validation and warnings | `validation`: `validate`, `validate_update`, `validate_status`, `signer`, `warn` |
//! | deletion | `delete`: `grace_seconds`, `orphans_dependents`, `response` |
//! | tables, selectors and quotas | `table`: `printer`; `requests`: `selectable_fields`; `quota` |
//!
//! Rules of a field that several kinds have, such as a Pod template or a label selector, are in `validation` and
//! `defaulting`. Rules that Kubernetes declares as tags are data, in `data/validation.json`: a file of a kind has only
//! the rest. The reference is kube-apiserver 1.37.

pub(crate) mod admissionregistration;
pub(crate) mod apiextensions;
pub(crate) mod apiregistration;
pub(crate) mod apps;
pub(crate) mod authentication;
pub(crate) mod authorization;
pub(crate) mod autoscaling;
pub(crate) mod batch;
pub(crate) mod certificates;
pub(crate) mod coordination;
pub(crate) mod core;
pub(crate) mod discovery;
pub(crate) mod events;
pub(crate) mod flowcontrol;
pub(crate) mod networking;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod resource;
pub(crate) mod scheduling;
pub(crate) mod storage;
pub(crate) mod storagemigration;

use std::sync::LazyLock;

use crate::{
    registry::{BuiltInKinds, Kind, StoreRoles},
    status::GroupResource,
};

/// All built-in kinds, by the paths of their files: the build script finds each `static KIND`. Each has a resource in
/// `data/resources.json`; a test compares the two lists.
pub(crate) static ALL: &[&Kind] = include!(concat!(env!("OUT_DIR"), "/kinds.rs"));

/// The built-in kinds with their registry and their indexes, created on first use.
static BUILT_IN: LazyLock<BuiltInKinds> = LazyLock::new(|| {
    let roles = StoreRoles {
        definition: &apiextensions::custom_resource_definition::KIND,
        api_service: &apiregistration::api_service::KIND,
        namespace: &core::namespace::KIND,
        service: &core::service::KIND,
    };
    BuiltInKinds::new(ALL, roles)
});

/// Returns the built-in kinds. Each server starts with their registry, and adds its custom resources.
pub(crate) fn built_in() -> &'static BuiltInKinds {
    &BUILT_IN
}

/// Returns a built-in kind; see [`BuiltInKinds::find`].
pub(crate) fn find(resource: &GroupResource) -> Option<&'static Kind> {
    BUILT_IN.find(resource)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt, Full};
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;
    use crate::ApiServer;

    async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let response = server.service().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        (code, serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap())
    }

    fn definition(plural: &str, kind: &str) -> Value {
        let version = |name: &str| {
            json!({ "name": name, "served": true, "storage": name == "v1", "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } })
        };
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.example.com") },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
                "versions": [version("v1"), version("v2")] } })
    }

    #[tokio::test(start_paused = true)]
    async fn crd_named_like_builtin_gets_no_builtin_rules() {
        let server = ApiServer::new();
        for (plural, kind) in [("services", "Service"), ("events", "Event")] {
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            assert_eq!(send(&server, "POST", definitions, &definition(plural, kind)).await.0, 201, "{plural}");
            let path_of = |version: &str| format!("/apis/example.com/{version}/namespaces/default/{plural}");
            let sent = json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": "a" },
                "spec": { "type": "NodePort", "ports": [{ "port": -1 }] } });
            let (code, created) = send(&server, "POST", &path_of("v1"), &sent).await;
            assert_eq!((code, &created["spec"]), (201, &sent["spec"]), "no defaults, no validation: {created}");
            let mut moved = send(&server, "GET", &format!("{}/a", path_of("v2")), &Value::Null).await.1;
            assert_eq!((&moved["apiVersion"], &moved["spec"]), (&json!("example.com/v2"), &sent["spec"]));
            moved["spec"] = json!({ "type": "ExternalName", "clusterIP": "None" });
            let (code, updated) = send(&server, "PUT", &format!("{}/a", path_of("v2")), &moved).await;
            assert_eq!((code, &updated["spec"]), (200, &moved["spec"]), "{updated}");
            assert_eq!(updated["metadata"]["generation"], 2, "counted as of any custom kind");
            let built_in = send(&server, "GET", &format!("/api/v1/namespaces/default/{plural}/a"), &Value::Null).await;
            assert_eq!(built_in.0, 404, "another table");
            let deleted = send(&server, "DELETE", &format!("{}/a", path_of("v1")), &Value::Null).await.1;
            assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")));
        }
    }

    #[test]
    fn resources_and_kinds_match_one_to_one() {
        let registry = &built_in().registry;
        for resource in registry.all() {
            let kind = resource.kind;
            assert_eq!((kind.group, kind.resource), (&*resource.id.group, &*resource.id.resource));
            assert_eq!(kind.kind, resource.kind_name());
        }
        let named: BTreeSet<_> = ALL.iter().map(|kind| (kind.group, kind.resource)).collect();
        assert_eq!(named.len(), ALL.len(), "a kind is listed twice");
        for kind in ALL {
            assert!(registry.any_version(&kind.group_resource()).is_some(), "{} is not served", kind.kind);
        }
    }

    /// The variants of `Plugin` are in the order of `AllOrderedPlugins`.
    #[test]
    fn plugins_of_each_kind_are_in_upstream_order() {
        for kind in ALL {
            let is_sorted = kind.admission.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(is_sorted, "{}: {:?}", kind.kind, kind.admission);
        }
    }
}
