//! Fields of an applied custom object that reads do not return. They are below an object whose schema has no
//! properties, or metadata values that reads drop, such as empty labels.
//!
//! kube-apiserver stores these fields, and prunes them when it reads the object from etcd. So the object differs from
//! the stored one each time it is applied. Each apply is a write with a new `resourceVersion`, and fields of the spec
//! increment the generation. This server does not store the fields. It marks the object instead
//! (`Store::mark_unread_fields`), so that the next apply is a write as well.

use serde_json::{Map, Value};

use crate::request::RequestInfo;

/// The effect of fields that are applied and not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpersisted {
    /// There are no such fields: the usual case.
    Nothing,
    /// The write counts as a change, even if readers see no difference.
    Something,
    /// The write also increments the generation. Used for fields of the spec.
    Counted,
}

impl Unpersisted {
    /// Returns the effect of the values in metadata that reads drop.
    pub(crate) fn in_metadata(metadata: &Value) -> Self {
        if has_dropped_value(metadata) { Self::Something } else { Self::Nothing }
    }

    /// Decides by the effect of metadata, and by the paths of the fields that the applied object has lost. Built-in
    /// kinds are decoded into Go types, so they have no such fields.
    pub(crate) fn decide(info: &RequestInfo, in_metadata: Self, lost: &[String]) -> Self {
        if info.resource.custom.is_none() {
            return Self::Nothing;
        }
        let has_status = info.resource.has_status();
        let is_in_status = |path: &String| path.starts_with("status.");
        if info.subresource.is_status() {
            return if lost.iter().any(is_in_status) { Self::Something } else { Self::Nothing };
        }
        // An apply of the main resource ignores the status.
        if lost.iter().any(|path| !(has_status && is_in_status(path))) {
            return Self::Counted;
        }
        in_metadata
    }
}

/// The metadata fields that an apply can set.
const APPLICABLE: [&str; 7] = [
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "generateName",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Returns `true` if metadata has a value that is dropped.
fn has_dropped_value(metadata: &Value) -> bool {
    let has_null = |fields: &Map<String, Value>| fields.values().any(Value::is_null);
    metadata.as_object().into_iter().flatten().any(|(name, value)| match (name.as_str(), value) {
        ("labels" | "annotations", Value::Object(map)) => map.is_empty() || has_null(map),
        ("finalizers", Value::Array(list)) => list.is_empty(),
        ("ownerReferences", Value::Array(list)) => {
            list.is_empty() || list.iter().filter_map(Value::as_object).any(has_null)
        }
        ("generateName", Value::String(name)) => name.is_empty(),
        (name, Value::Null) => APPLICABLE.contains(&name),
        _ => false,
    })
}
