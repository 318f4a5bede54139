//! Compares the objects of an app after the steps with the objects of an app that starts with the users' final ones.
//!
//! A level-triggered app makes the same objects in both cases. One that only creates its objects, and never updates them,
//! leaves the first version's.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    checks::Violation,
    normal::{self, NormalizedObject, SERVER_SET_METADATA},
    snapshot::{Snapshot, uid},
    timed::TimeDependent,
};

/// Name of the checker.
const REACHES_ALL: &str = "a change reaches all objects";
/// Other fields of the metadata that a new object can't have, or that the app adds.
const NOT_APPLIED: [&str; 4] = ["deletionTimestamp", "finalizers", "generation", "ownerReferences"];

/// The objects at the end of a run, before everything is deleted.
#[derive(Clone, Default)]
pub(super) struct FinalObjects {
    /// The objects of users, as a stream of YAML documents.
    pub(super) of_users: String,
    /// The objects that the app created, without their status.
    of_app: Vec<NormalizedObject>,
}

impl FinalObjects {
    /// Reads the objects of a snapshot. CRDs and namespaces come first, because others need them.
    pub(super) fn read(snapshot: &Snapshot, ignored: &[String], timed: &TimeDependent) -> Self {
        let of_users = snapshot.objects.values().filter(|object| snapshot.by_users.contains(uid(object)));
        let stays = |object: &&Arc<Value>| object["metadata"]["deletionTimestamp"].is_null();
        let mut of_users: Vec<_> = of_users.filter(stays).map(|object| without_server_fields(object)).collect();
        of_users.sort_by_key(|object| match object["kind"].as_str() {
            Some("CustomResourceDefinition") => 0,
            Some("Namespace") => 1,
            _ => 2,
        });
        let documents: Vec<_> = of_users.iter().map(ToString::to_string).collect();
        Self { of_users: documents.join("\n---\n"), of_app: normal::state_of_created(snapshot, ignored, timed) }
    }

    /// Returns the finding if the objects of the app differ from a fresh start's. `kept` are the resources whose
    /// objects outlive their primaries.
    pub(super) fn compare(&self, fresh: &Self, kept: &[String]) -> Option<Violation> {
        let compared = |objects: &[NormalizedObject]| -> Vec<NormalizedObject> {
            objects.iter().filter(|object| !kept.contains(&object.resource)).cloned().collect()
        };
        let (stepped, fresh) = (compared(&self.of_app), compared(&fresh.of_app));
        let [more, less] = [normal::without(&stepped, &fresh), normal::without(&fresh, &stepped)];
        let mut named = BTreeSet::new();
        let mut texts = Vec::new();
        for one in more {
            let name = &one.name;
            texts.push(match less.iter().find(|other| other.name == *name) {
                Some(other) => {
                    named.insert(name.clone());
                    let (path, after, fresh) = normal::first_field(&one.object, &other.object);
                    format!("{name}: {path} is {after} after the steps, and {fresh} if the app starts with the final objects")
                }
                None => format!("{name} is there after the steps, and not if the app starts with the final objects"),
            });
        }
        for other in less.iter().filter(|other| !named.contains(&other.name)) {
            let name = &other.name;
            texts.push(format!(
                "{name} is missing after the steps, and is there if the app starts with the final objects"
            ));
        }
        (!texts.is_empty()).then(|| Violation::new(REACHES_ALL, texts.join("; ")))
    }
}

/// Returns the finding of a fresh start that fails by itself.
pub(super) fn failed_start(found: &Violation) -> Violation {
    let what = format!("the app starts with the final objects, and fails: {}: {}", found.checker, found.message);
    Violation::new(REACHES_ALL, what)
}

/// Returns an object as a user would apply it.
fn without_server_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let is_applied = |name: &str| !SERVER_SET_METADATA.contains(&name) && !NOT_APPLIED.contains(&name);
        metadata.retain(|name, _| is_applied(name));
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_users_are_applied_without_server_fields() {
        let metadata = json!({ "name": "a", "uid": "1", "generation": 2, "finalizers": ["x"], "labels": { "a": "b" } });
        let object = json!({ "kind": "Site", "metadata": metadata, "spec": {}, "status": { "n": 1 } });
        let expected = json!({ "kind": "Site", "metadata": { "name": "a", "labels": { "a": "b" } }, "spec": {} });
        assert_eq!(without_server_fields(&object), expected);
    }

    #[test]
    fn differences_from_a_fresh_start_are_named() {
        let secret = |name: &str, color: &str| NormalizedObject {
            name: format!("secrets default/{name}"),
            resource: "secrets".into(),
            object: json!({ "data": { "color": color } }),
        };
        let of = |objects: Vec<NormalizedObject>| FinalObjects { of_app: objects, ..FinalObjects::default() };
        let stepped = of(vec![secret("a", "red"), secret("old", "red"), secret("same", "red")]);
        let fresh = of(vec![secret("a", "blue"), secret("new", "blue"), secret("same", "red")]);
        let found = stepped.compare(&fresh, &[]).unwrap();
        let start = "if the app starts with the final objects";
        let expected = [
            format!(r#"secrets default/a: .data.color is "red" after the steps, and "blue" {start}"#),
            format!("secrets default/old is there after the steps, and not {start}"),
            format!("secrets default/new is missing after the steps, and is there {start}"),
        ];
        assert_eq!((found.checker.as_str(), found.message), (REACHES_ALL, expected.join("; ")));
        assert_eq!(stepped.compare(&fresh, &["secrets".to_owned()]), None);
    }
}
