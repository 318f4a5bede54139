//! The managers of the replicas: translates `managedFields` of an object to `managedFields` of its Scale, and back
//! after a write.
//!
//! Upstream: `ScaleHandler` in `k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go`. It identifies managers by
//! the version of the Scale: after a write, their entries have the version `autoscaling/v1` and no time.
//!
//! Without the translation, two writers of replicas through different endpoints would not conflict: the field has
//! another path in each.

use serde_json::Value;

use crate::apply::{
    field_set::{FieldSet, PathElement},
    managed::{Managed, Manager, Operation, Owned},
};

/// The version of Scales.
pub(super) const API_VERSION: &str = "autoscaling/v1";

/// Converts field names, from the root on, to the path that `managedFields` has.
fn field_path(names: &[String]) -> Vec<PathElement> {
    names.iter().map(|name| PathElement::field(name)).collect()
}

/// Returns a field set with one path.
fn single_field_set(path: &[PathElement]) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}

/// Returns `managedFields` of the Scale of an object whose replicas are at this path. Only managers that own the
/// replicas appear. Times are kept.
pub(super) fn managed_fields_of_scale(object: &Value, replicas: &[String]) -> Vec<Value> {
    let (path, in_scale) = (field_path(replicas), single_field_set(&["spec", "replicas"].map(PathElement::field)));
    let mut managed = Managed::default();
    for (manager, owned) in Managed::from_object(object).iter().filter(|(_, owned)| owned.set.contains(&path)) {
        let owned = Owned { set: in_scale.clone(), api_version: API_VERSION.to_owned(), time: owned.time.clone() };
        // An updater gets the version of Scales. Appliers are identified by name alone.
        let manager = match manager.operation {
            Operation::Apply => manager.clone(),
            Operation::Update => Manager::updater(&manager.name, API_VERSION, &manager.subresource),
        };
        managed.insert(manager, owned);
    }
    managed.encode()
}

/// Returns `managedFields` of the object after its `Scale` was written. A manager that no longer owns `spec.replicas`
/// of the `Scale` loses the field of the object. A manager that is new in the `Scale` gets an entry in the version of
/// the object, without a time. `scale` has the managed fields after the write.
pub(super) fn managed_fields_of_object(object: &Value, replicas: &[String], scale: &Value) -> Vec<Value> {
    let path = field_path(replicas);
    let own = single_field_set(&path);
    let (before, of_scale) = (Managed::from_object(object), Managed::from_object(scale));
    let mut managed = Managed::default();
    for (manager, owned) in before.iter() {
        let mut owned = owned.clone();
        if of_scale.get(manager).is_none() {
            owned.set = owned.set.difference(&own);
        }
        managed.insert(manager.clone(), owned);
    }
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    for (manager, _) in of_scale.iter() {
        if before.get(manager).is_none_or(|owned| !owned.set.contains(&path)) {
            let owned = Owned { set: own.clone(), api_version: api_version.to_owned(), time: None };
            managed.insert(manager.clone(), owned);
        }
    }
    managed.encode()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, fields: &Value, time: Option<&str>) -> Value {
        let mut entry = json!({ "manager": manager, "operation": "Update", "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields });
        if let Some(time) = time {
            entry["time"] = time.into();
        }
        entry
    }

    #[test]
    fn remaining_scale_owners_get_entries_for_replicas() {
        const TIME: &str = "2026-01-02T03:04:05Z";
        let fields = json!({ "f:spec": { "f:paused": {}, "f:replicas": {} } });
        let object = json!({ "apiVersion": "apps/v1",
            "metadata": { "managedFields": [entry("one", &fields, Some(TIME))] } });
        let path = ["spec".to_owned(), "replicas".to_owned()];
        let scale = json!({ "metadata": { "managedFields": managed_fields_of_scale(&object, &path) } });
        let only_replicas = json!({ "f:spec": { "f:replicas": {} } });
        let expected =
            [entry("one", &only_replicas, None), entry("one", &json!({ "f:spec": { "f:paused": {} } }), Some(TIME))];
        assert_eq!(managed_fields_of_object(&object, &path, &scale), expected);
        // No manager owns the replicas any more.
        assert_eq!(managed_fields_of_object(&object, &path, &json!({ "metadata": {} })), expected[1..]);
    }
}
