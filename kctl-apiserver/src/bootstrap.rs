//! The objects of a new cluster: roles and bindings (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`), `PriorityClasses`,
//! the objects of API priority and fairness, and the Service `kubernetes`.
//!
//! kube-apiserver writes them with hooks after its start (`rbac/bootstrap-roles` and others). Here they exist before the
//! first request, so a test never has to wait for them. They bypass the write pipeline: they get the current revision,
//! and watches get no event for them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{
    clock::Rng,
    key,
    status::GroupResource,
    store::{Key, Store},
};

/// The objects of one data file, each without uid and times.
type BootstrapObjects = LazyLock<Vec<(GroupResource, Key, Value)>>;

/// Roles and bindings, with the rules of aggregated roles. Each has the annotation
/// `rbac.authorization.kubernetes.io/autoupdate`: kube-apiserver reconciles it at a start. This server only adds
/// missing objects.
static ACCESS: BootstrapObjects = LazyLock::new(|| parse(include_str!("../data/access.json")));
/// All other objects.
static STANDARD: BootstrapObjects = LazyLock::new(|| parse(include_str!("../data/standard.json")));

/// The seeds of the uids of each file. They are separate from the server's sequence, so that uids of later objects do
/// not depend on the number of objects here.
const ACCESS_SEED: u64 = 0x6b63_746c;
const STANDARD_SEED: u64 = 0x7374_6e64;

/// Parses a data file of entries with `group`, `resource` and `object`.
fn parse(file: &str) -> Vec<(GroupResource, Key, Value)> {
    let entries: Vec<Value> = serde_json::from_str(file).expect("the file is generated and tested");
    let whole = |mut entry: Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = GroupResource::new(&text(&entry["group"]), &text(&entry["resource"]));
        (resource, key::object_key(&entry["object"]), entry["object"].take())
    };
    entries.into_iter().map(whole).collect()
}

/// Stores all objects that the server does not have yet, without events. The next cluster IP is computed last, because
/// the Service `kubernetes` takes the first one.
pub(crate) fn objects(store: &mut Store) {
    load(store, &ACCESS, ACCESS_SEED);
    load(store, &STANDARD, STANDARD_SEED);
    store.init_addresses();
}

/// Stores the objects of a file. All times in an object are the same: its creation and the times of its field managers
/// and conditions. Draws a uid for each object, even if it exists already. The uids therefore do not depend on the
/// contents of the data folder.
fn load(store: &mut Store, objects: &[(GroupResource, Key, Value)], seed: u64) {
    let now = store.clock.seconds();
    let mut rng = Rng::new(seed);
    for (resource, key, object) in objects {
        let uid = rng.uid();
        if store.get(resource, key).is_some() {
            continue;
        }
        let mut object = object.clone();
        let meta = &mut object["metadata"];
        meta["uid"] = uid.into();
        meta["creationTimestamp"] = now.clone().into();
        for entry in meta["managedFields"].as_array_mut().into_iter().flatten() {
            entry["time"] = now.clone().into();
        }
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            condition["lastTransitionTime"] = now.clone().into();
        }
        store.put_initial(resource, key.clone(), object);
    }
}

#[cfg(test)]
mod tests {
    use crate::{ApiServer, authorizer::RBAC, test_folder::TestFolder};

    #[tokio::test]
    async fn default_roles_have_their_aggregated_rules() {
        let server = ApiServer::new();
        let role = |name: &str| server.object(RBAC, "clusterroles", "", name).unwrap();
        // Expects the numbers of rules that the controller of kube-controller-manager 1.37 aggregates.
        for (name, n_rules) in [("view", 12), ("edit", 27), ("admin", 29), ("cluster-admin", 2)] {
            assert_eq!(role(name)["rules"].as_array().map(Vec::len), Some(n_rules), "{name}");
        }
        assert_eq!(server.objects(RBAC, "clusterrolebindings").len(), 54);
    }

    #[tokio::test]
    async fn standard_objects_take_no_revision_from_other_objects() {
        assert_eq!(ApiServer::new().revision(), 5, "four namespaces");
    }

    #[tokio::test]
    async fn kubernetes_service_has_the_first_address() {
        let service = ApiServer::new().object("", "services", "default", "kubernetes").unwrap();
        assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
        assert_eq!(service["metadata"]["managedFields"][0]["time"], "2026-01-01T00:00:00Z");
    }

    #[tokio::test]
    async fn restart_with_data_folder_keeps_cluster_roles() {
        let folder = TestFolder::new("bootstrap");
        let server = ApiServer::new();
        server.persist_in(&folder).unwrap();
        let before = server.objects(RBAC, "clusterroles");
        drop(server);
        let restarted = ApiServer::new();
        restarted.persist_in(&folder).unwrap();
        let found = restarted.objects(RBAC, "clusterroles");
        assert_eq!(found, before);
    }
}
