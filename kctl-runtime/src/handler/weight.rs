//! The weight of a change for a key that fails: it decides if the backoff continues, ends, or ends and resets the
//! failures.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::{object::Stored, store::Change};

/// The effect of a change on a key that is in backoff. Other keys always run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// The backoff continues: only a status changed, or an owned object. Most of these changes are the writes of the
    /// failing reconcile itself, which would make it run in a hot loop.
    Unchanged,
    /// The key runs now and its failures are kept: something else than the primary's spec changed, on which the outcome
    /// may depend.
    Requested,
    /// The key runs now and its failures are reset: they belong to another spec.
    Changed,
}

/// The fields that do not belong to the spec. `kind` is one of them because items of lists have none.
const NOT_SPECIFIED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// The metadata that changes with every write.
const WRITTEN_ALWAYS: [&str; 2] = ["resourceVersion", "generation"];

impl Weight {
    /// Returns the weight of a change of the primary.
    pub(super) fn of_primary(change: &Change<Stored>) -> Self {
        let Change::Updated { old, new } = change else { return Self::Changed };
        let (before, after) = (old.meta(), new.meta());
        if before.uid != after.uid || before.deletion_timestamp().is_some() != after.deletion_timestamp().is_some() {
            return Self::Changed;
        }
        // Equal generations prove an equal spec. Different ones prove nothing: many kinds have no generation, and
        // without a status subresource it also grows with the status of a custom resource.
        let same_generation = before.generation().is_some() && before.generation() == after.generation();
        let (old, new) = (old.json(), new.json());
        let (Some(old), Some(new)) = (fields(&old), fields(&new)) else { return Self::Requested };
        if !same_generation && !equal(&old, &new, &NOT_SPECIFIED) {
            return Self::Changed;
        }
        match (metadata(&old), metadata(&new)) {
            (Some(old), Some(new)) if equal(&old, &new, &WRITTEN_ALWAYS) => Self::Unchanged,
            _ => Self::Requested,
        }
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
fn equal(old: &Fields<'_>, new: &Fields<'_>, but: &[&str]) -> bool {
    rest(old, but).eq(rest(new, but))
}

fn rest<'a>(fields: &'a Fields<'a>, but: &[&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
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
    fn every_update_of_the_primary_has_its_weight() {
        use Weight::{Changed, Requested, Unchanged};
        let table = [
            // A write by the controller itself: a status, and the fields that change with it.
            (json!({"/metadata/resourceVersion": "2"}), Unchanged),
            (json!({"/metadata/resourceVersion": "2", "/status/n": 2}), Unchanged),
            (json!({"/metadata/generation": 2, "/status/n": 2}), Unchanged),
            (json!({"/metadata/generation": null, "/status/n": 2}), Unchanged),
            (json!({"/kind": "ConfigMap"}), Unchanged),
            // Metadata: a user annotates the object to trigger a reconcile, or the reconcile writes an annotation.
            (json!({"/metadata/labels": {"a": "c"}}), Requested),
            (json!({"/metadata/annotations": {"a": "c"}}), Requested),
            (json!({"/metadata/finalizers": ["a/b"]}), Requested),
            // The spec, with and without a generation.
            (json!({"/metadata/generation": 2, "/spec/n": 2}), Changed),
            (json!({"/metadata/generation": null, "/spec/n": 2}), Changed),
            (json!({"/metadata/generation": null, "/data": {"a": "b"}}), Changed),
            // Another object of the same name, and the start of a deletion.
            (json!({"/metadata/uid": "2"}), Changed),
            (json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}), Changed),
        ];
        let old = stored(&json!({}));
        for (change, expected) in table {
            let change = Change::Updated { old: old.clone(), new: stored(&change) };
            assert_eq!(Weight::of_primary(&change), expected, "{}", change.latest().json());
        }
    }

    #[test]
    fn adds_and_deletes_reset_failures() {
        let object = stored(&json!({}));
        assert_eq!(Weight::of_primary(&Change::Added(object.clone())), Weight::Changed);
        assert_eq!(Weight::of_primary(&Change::Deleted { last: object }), Weight::Changed);
    }
}
