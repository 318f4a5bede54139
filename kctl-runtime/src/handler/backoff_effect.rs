//! The effect of a change of the primary on its key, if the key failed: its backoff continues, ends, or ends and the
//! failures are reset.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::{object::Stored, own_writes, queue::BackoffEffect, store::Change};

/// The metadata that changes with every write.
const WRITTEN_ALWAYS: [&str; 2] = ["resourceVersion", "generation"];

/// Returns the effect of a change of the primary on its key.
///
/// Equal generations do not prove an equal spec: a binding sets `spec.nodeName` of a Pod, without a new generation
/// (`assignPod` in `pkg/registry/core/pod/storage/storage.go`). Different ones prove nothing either: without a status
/// subresource the generation of a custom resource also grows with its status.
pub(crate) fn effect_on_primary(change: &Change<Stored>) -> BackoffEffect {
    let Change::Updated { old, new } = change else { return BackoffEffect::Reset };
    let (before, after) = (old.meta(), new.meta());
    if before.uid != after.uid || before.deletion_timestamp().is_some() != after.deletion_timestamp().is_some() {
        return BackoffEffect::Reset;
    }
    let (old, new) = (old.json(), new.json());
    let (Some(old), Some(new)) = (fields(&old), fields(&new)) else { return BackoffEffect::End };
    if !equal_except(&old, &new, &own_writes::NON_SPEC_FIELDS) {
        return BackoffEffect::Reset;
    }
    match (metadata(&old), metadata(&new)) {
        (Some(old), Some(new)) if equal_except(&old, &new, &WRITTEN_ALWAYS) => BackoffEffect::Keep,
        _ => BackoffEffect::End,
    }
}

/// The fields of an object with the JSON of their values. Equal values have equal JSON, because the API server writes
/// both.
type Fields<'a> = BTreeMap<&'a str, &'a RawValue>;

fn fields(json: &str) -> Option<Fields<'_>> {
    serde_json::from_str(json).ok()
}

fn metadata<'a>(object: &Fields<'a>) -> Option<Fields<'a>> {
    fields(object.get("metadata")?.get())
}

/// Returns `true` if two objects are equal apart from the fields in `but`.
fn equal_except(old: &Fields<'_>, new: &Fields<'_>, but: &[&str]) -> bool {
    fields_except(old, but).eq(fields_except(new, but))
}

fn fields_except<'a>(fields: &'a Fields<'a>, but: &[&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    fields.iter().filter(|(name, _)| !but.contains(name)).map(|(name, text)| (*name, text.get()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;
    use crate::object::Kind;

    fn stored(change: &Value) -> Arc<Stored> {
        let mut object = json!({
            "apiVersion": "v1",
            "metadata": {"name": "a", "uid": "1", "resourceVersion": "1", "generation": 1, "labels": {"a": "b"}},
            "spec": {"n": 1},
            "status": {"n": 1},
        });
        for (path, value) in change.as_object().unwrap() {
            let (parent, name) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[name] = value.clone();
        }
        Arc::new(Stored::accept(&Kind::of::<ConfigMap>(), &object.to_string()).unwrap())
    }

    #[test]
    fn every_update_of_the_primary_has_its_effect() {
        use BackoffEffect::{End, Keep, Reset};
        let table = [
            // A write by the controller itself: a status, and the fields that change with it.
            (json!({"/metadata/resourceVersion": "2"}), Keep),
            (json!({"/metadata/resourceVersion": "2", "/status/n": 2}), Keep),
            (json!({"/metadata/generation": 2, "/status/n": 2}), Keep),
            (json!({"/metadata/generation": null, "/status/n": 2}), Keep),
            (json!({"/kind": "ConfigMap"}), Keep),
            // Metadata: a user annotates the object to trigger a reconcile, or the reconcile writes an annotation.
            (json!({"/metadata/labels": {"a": "c"}}), End),
            (json!({"/metadata/annotations": {"a": "c"}}), End),
            (json!({"/metadata/finalizers": ["a/b"]}), End),
            // The spec, with and without a generation.
            (json!({"/metadata/generation": 2, "/spec/n": 2}), Reset),
            (json!({"/metadata/generation": null, "/spec/n": 2}), Reset),
            (json!({"/spec/n": 2}), Reset),
            (json!({"/metadata/generation": null, "/data": {"a": "b"}}), Reset),
            // Another object of the same name, and the start of a deletion.
            (json!({"/metadata/uid": "2"}), Reset),
            (json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}), Reset),
        ];
        let old = stored(&json!({}));
        for (change, expected) in table {
            let change = Change::Updated { old: old.clone(), new: stored(&change) };
            assert_eq!(effect_on_primary(&change), expected, "{}", change.latest().json());
        }
    }

    #[test]
    fn adds_and_deletes_reset_failures() {
        let object = stored(&json!({}));
        assert_eq!(effect_on_primary(&Change::Added(object.clone())), BackoffEffect::Reset);
        assert_eq!(effect_on_primary(&Change::Deleted { last: object }), BackoffEffect::Reset);
    }
}
