//! Name conflicts and deletion of CRDs: writes their status as the controllers of apiextensions-apiserver do.
//!
//! Upstream: `naming_controller.go` of `apiextensions-apiserver/pkg/controller/status`, and `crd_finalizer.go` of
//! `pkg/controller/finalizer`.
//!
//! The names of a CRD are plural, singular, kind, list kind and short names. Two CRDs of a group cannot have the same
//! name; the first accepted CRD keeps it. A CRD whose names are taken is stored, but not served.

use std::sync::Arc;

use serde_json::Value;

use super::{garbage, namespaces};
use crate::{
    crd,
    deletion::CUSTOM_RESOURCE_CLEANUP,
    field_errors::text,
    kinds::apiextensions::custom_resource_definition::DEFINITIONS,
    lifecycle::Writer,
    registry::{Registry, Resource, kind::Subresource},
    status::GroupResource,
    store::{Event, Key, Store, has_finalizer},
};

/// The field manager of the status of CRDs.
const WRITER: Writer = Writer { manager: "kube-apiserver", subresource: Subresource::Status };

/// Accepts the names of a CRD if they are free in its group, and sets its conditions: `NamesAccepted`, `Established`,
/// and `KubernetesAPIApprovalPolicyConformant` for groups of Kubernetes. On a cluster, controllers do this some time
/// after the CRD was created. Here it is part of the same request, so the next request finds the kind served. The steps
/// are the same for each write; a step without a change writes nothing.
pub(crate) fn name(store: &mut Store, key: &Key) {
    if let Some(definition) =
        store.get(&DEFINITIONS, key).filter(|definition| !crd::has_current_approval_condition(definition))
    {
        write(store, key, &definition, crd::set_approval_condition);
    }
    let Some(definition) = store.get(&DEFINITIONS, key) else { return };
    if crd::names_accepted(&definition) {
        if crd::may_be_established(&definition) {
            write(store, key, &definition, crd::establish);
        }
        return;
    }
    let all = definitions_of_group(store, &definition["spec"]["group"]);
    let taken = crd::GrantedNames::from_definitions(all.iter().map(|(_, definition)| definition.as_ref()));
    write(store, key, &definition, |new, now| crd::accept_names(new, &taken, now));
}

/// Checks the CRDs of a group again whose names are not accepted, because another CRD may have freed the names.
pub(super) fn recheck_names(store: &mut Store, group: &Value) {
    for (key, _) in definitions_of_group(store, group) {
        name(store, &key);
    }
}

/// Returns the group in which a change of a CRD may have freed names.
pub(super) fn frees_names_in(event: &Event) -> Option<String> {
    let before = event.before.as_ref()?.value();
    let is_renamed = || before["status"]["acceptedNames"] != event.object.value()["status"]["acceptedNames"];
    (event.deleted || is_renamed()).then(|| before["spec"]["group"].as_str().unwrap_or_default().to_owned())
}

/// Returns the CRDs of a group.
fn definitions_of_group(store: &mut Store, group: &Value) -> Vec<(Key, Arc<Value>)> {
    let all = store.table(&DEFINITIONS).values(None);
    let same = all.filter(|(_, definition)| definition["spec"]["group"] == *group);
    same.map(|(key, definition)| (key.clone(), definition)).collect()
}

/// Deletes the objects of a CRD that is being deleted, and removes this controller's finalizer when none is left. A CRD
/// that was never established has no objects. The condition `Terminating` shows the progress. An object with a
/// finalizer keeps the CRD until the finalizer is removed.
pub(super) fn end(store: &mut Store, key: &Key) {
    let has_cleanup_finalizer = |definition: &Arc<Value>| has_finalizer(definition, CUSTOM_RESOURCE_CLEANUP);
    let Some(definition) = store.get(&DEFINITIONS, key).filter(has_cleanup_finalizer) else { return };
    write(store, key, &definition, crd::mark_deletion_in_progress);
    let resource = GroupResource::new(text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["plural"]));
    let mut left = namespaces::RemainingObjects::default();
    let own = match store.registry.any_version(&resource) {
        // A CRD may have the name of a built-in resource, which it does not serve. Those objects are not its own.
        Some(served) => Some(served).filter(|served| served.custom.is_some()),
        None => unserved_resource(&definition, &resource),
    };
    if let Some(own) = own.filter(|_| crd::is_established(&definition)) {
        namespaces::delete_objects_of(store, &own, None, &mut left);
    }
    if let Some(definition) = store.get(&DEFINITIONS, key).filter(|_| left.is_empty()) {
        write(store, key, &definition, |new, now| {
            crd::mark_deletion_completed(new, now);
            garbage::remove_finalizer(new, CUSTOM_RESOURCE_CLEANUP);
        });
    }
}

/// Returns the resource of a CRD that serves no version. Its objects are deleted as well, since they would be back with
/// the next CRD of this name.
fn unserved_resource(definition: &Value, resource: &GroupResource) -> Option<Arc<Resource>> {
    let mut served = definition.clone();
    for version in served["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["served"] = true.into();
    }
    Registry::default().with_definitions(std::iter::once(&served)).any_version(resource)
}

/// Changes the status of a CRD, if that changes anything.
fn write(store: &mut Store, key: &Key, old: &Arc<Value>, change: impl FnOnce(&mut Value, &str)) {
    let (mut new, now) = (Value::clone(old), store.clock.seconds());
    change(&mut new, &now);
    if new != **old {
        WRITER.write(store, &DEFINITIONS, key, old, new);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ApiServer;

    #[tokio::test(start_paused = true)]
    async fn deleted_crd_without_served_version_takes_its_objects() {
        let server = ApiServer::new();
        tokio::spawn(server.controllers());
        let version = |is_served: bool| {
            json!({ "name": "v1", "served": is_served, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } })
        };
        let definition = json!({ "metadata": { "name": "foos.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "foos", "kind": "Foo" },
                "versions": [version(true)] } });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.succeed("POST", definitions, &definition).await;
        let foo = json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": "a" } });
        server.succeed("POST", "/apis/example.com/v1/namespaces/default/foos", &foo).await;
        let path = format!("{definitions}/foos.example.com");
        server.succeed("PATCH", &path, &json!({ "spec": { "versions": [version(false)] } })).await;
        server.succeed("DELETE", &path, &json!({})).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(server.object("apiextensions.k8s.io", "customresourcedefinitions", "", "foos.example.com").is_none());
        assert!(server.objects("example.com", "foos").is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn deleted_crd_leaves_built_in_objects() {
        let server = ApiServer::new();
        tokio::spawn(server.controllers());
        let rbac = "rbac.authorization.k8s.io";
        let name = format!("clusterroles.{rbac}");
        let definition = json!({
            "metadata": { "name": name, "annotations": { "api-approved.kubernetes.io": "unapproved, for a test" } },
            "spec": { "group": rbac, "scope": "Cluster", "names": { "plural": "clusterroles", "kind": "ClusterRole" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object" } } }] } });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let n_roles = server.objects(rbac, "clusterroles").len();
        server.succeed("POST", definitions, &definition).await;
        server.succeed("DELETE", &format!("{definitions}/{name}"), &json!({})).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(server.object("apiextensions.k8s.io", "customresourcedefinitions", "", &name).is_none());
        assert_eq!(server.objects(rbac, "clusterroles").len(), n_roles);
    }
}
