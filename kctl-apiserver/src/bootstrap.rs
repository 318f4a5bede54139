//! The objects of a new cluster. Roles and bindings are here (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`), the
//! others in `standard.rs`.
//!
//! kube-apiserver writes them with hooks after its start (`rbac/bootstrap-roles` and others). Here
//! they exist before the first request, so a test never has to wait for them.

mod standard;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::{
    clock::Rng,
    controllers::aggregated,
    kinds::{self, rbac::cluster_role},
    status::GroupResource,
    store::{Key, Store},
};

/// The API group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The seed of their uids. Separate from the server's sequence, so that uids of later objects do not depend on the
/// number of roles.
const SEED: u64 = 0x6b63_746c;

/// A role or a binding, without the fields that the server adds.
struct BootstrapObject {
    /// `clusterroles`, `clusterrolebindings`, `roles` or `rolebindings`.
    group_resource: GroupResource,
    /// Namespace and name; the namespace is empty for cluster-scoped ones.
    key: Key,
    /// The object without the uid and the creation time, which it gets when it is stored.
    object: Value,
}

/// All roles and bindings, from `data/access.json`, with aggregated rules.
static OBJECTS: LazyLock<Vec<BootstrapObject>> = LazyLock::new(|| {
    let entries: Vec<Value> =
        serde_json::from_str(include_str!("../data/access.json")).expect("the file is generated and tested");
    let mut objects: Vec<BootstrapObject> = entries.into_iter().map(whole).collect();
    aggregate(&mut objects);
    objects
});

/// Completes an entry of the file.
///
/// The label and the annotation are those that upstream gives to each of them. With the annotation,
/// a restart of kube-apiserver repairs changed roles; this server only adds missing ones.
fn whole(mut entry: Value) -> BootstrapObject {
    let take = |entry: &mut Value, field: &str| entry[field].take().as_str().unwrap_or_default().to_owned();
    let resource = take(&mut entry, "resource");
    let key = (take(&mut entry, "namespace"), take(&mut entry, "name"));
    let group_resource = GroupResource::new(RBAC, &resource);
    let kind = kinds::find(&group_resource).map_or("", |rules| rules.kind);
    let mut labels = entry["labels"].take();
    labels["kubernetes.io/bootstrapping"] = "rbac-defaults".into();
    let mut object = json!({
        "kind": kind,
        "apiVersion": format!("{RBAC}/v1"),
        "metadata": {
            "name": key.1,
            "labels": labels,
            "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        },
    });
    if !key.0.is_empty() {
        object["metadata"]["namespace"] = key.0.clone().into();
    }
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        if !entry[field].is_null() {
            object[field] = entry[field].take();
        }
    }
    BootstrapObject { group_resource, key, object }
}

/// Computes the rules of aggregated roles, until none changes: a role may be part of another aggregated one.
///
/// The result is the one that the controller would compute, so it finds nothing to do.
fn aggregate(objects: &mut [BootstrapObject]) {
    loop {
        let roles: Vec<&Value> = objects
            .iter()
            .filter(|object| cluster_role::KIND.is_of(&object.group_resource))
            .map(|object| &object.object)
            .collect();
        let changed = objects.iter().enumerate().find_map(|(index, entry)| {
            let rules = Value::Array(aggregated(&entry.object, &roles)?);
            (entry.object["rules"] != rules).then_some((index, rules))
        });
        let Some((index, rules)) = changed else { return };
        objects[index].object["rules"] = rules;
    }
}

/// Stores all objects that the server does not have yet, without events.
///
/// The next cluster IP is computed last, because the Service `kubernetes` takes the first one.
pub(crate) fn objects(store: &mut Store) {
    roles(store);
    standard::objects(store);
    store.count_addresses();
}

/// Stores the roles and bindings.
///
/// Draws a uid for each object, even if it exists already. The uids therefore do not depend on the contents of the data
/// folder.
fn roles(store: &mut Store) {
    let now = store.clock.seconds();
    let mut rng = Rng::new(SEED);
    for built_in in OBJECTS.iter() {
        let uid = rng.uid();
        if store.get(&built_in.group_resource, &built_in.key).is_some() {
            continue;
        }
        let mut object = built_in.object.clone();
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["creationTimestamp"] = now.clone().into();
        object["metadata"]["managedFields"] = managers(&object, &now);
        store.put_first(&built_in.group_resource, built_in.key.clone(), object);
    }
}

/// Returns `managedFields`: the API server wrote everything but aggregated rules, which their controller applied.
fn managers(object: &Value, now: &str) -> Value {
    let owned = |map: &Value| -> Value {
        let keys = map.as_object().into_iter().flatten().map(|(key, _)| (format!("f:{key}"), json!({})));
        std::iter::once((".".to_owned(), json!({}))).chain(keys).collect::<Map<_, _>>().into()
    };
    let meta = &object["metadata"];
    let mut fields = json!({
        "f:metadata": { "f:annotations": owned(&meta["annotations"]), "f:labels": owned(&meta["labels"]) },
    });
    let is_aggregated = object["aggregationRule"].is_object();
    if is_aggregated {
        fields["f:aggregationRule"] = owned(&object["aggregationRule"]);
    }
    for field in ["rules", "roleRef", "subjects"] {
        if !(object[field].is_null() || is_aggregated && field == "rules") {
            fields[format!("f:{field}")] = json!({});
        }
    }
    let entry = |manager: &str, operation: &str, fields: Value| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": object["apiVersion"], "time": now,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let mut entries = vec![entry("kube-apiserver", "Update", fields)];
    if is_aggregated {
        entries.insert(0, entry("clusterrole-aggregation-controller", "Apply", json!({ "f:rules": {} })));
    }
    entries.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

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
    async fn roles_in_a_folder_are_not_made_anew() {
        let folder = std::env::temp_dir().join(format!("kctl-bootstrap-{}", std::process::id()));
        let server = ApiServer::new();
        server.keep_in(&folder).unwrap();
        let before = server.objects(RBAC, "clusterroles");
        drop(server);
        let restarted = ApiServer::new();
        restarted.keep_in(&folder).unwrap();
        let found = restarted.objects(RBAC, "clusterroles");
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, before);
    }
}
