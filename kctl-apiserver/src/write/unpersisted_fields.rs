//! What an apply of a custom object stores, and who reads the object never sees: fields below an object whose schema names none,
//! and what metadata drop, as empty labels.
//!
//! Real servers prune what they read, not what was applied. Such an object differs from what is stored whenever it is applied
//! again: each apply is a write with a new version, and its spec is a new generation.

use serde_json::{Map, Value};

use crate::request::RequestInfo;

/// What is stored beside what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpersisted {
    Nothing,
    /// A write of the same object is a write.
    Something,
    /// It is a new generation, too.
    Counted,
}

impl Unpersisted {
    /// By the paths of the fields that an applied object has lost.
    pub(crate) fn of(info: &RequestInfo, has_odd_metadata: bool, lost: &[String]) -> Self {
        if info.resource.custom.is_none() {
            return Self::Nothing;
        }
        let has_status = info.resource.subresource("status").is_some();
        let is_of_status = |path: &String| path.starts_with("status.");
        if info.subresource == "status" {
            return if lost.iter().any(is_of_status) { Self::Something } else { Self::Nothing };
        }
        // A status that is applied beside the rest is not taken.
        if lost.iter().any(|path| !(has_status && is_of_status(path))) {
            return Self::Counted;
        }
        if has_odd_metadata { Self::Something } else { Self::Nothing }
    }
}

/// Whether metadata have something that is dropped from them.
pub(crate) fn is_odd(metadata: &Value) -> bool {
    let has_null = |fields: &Map<String, Value>| fields.values().any(Value::is_null);
    metadata.as_object().into_iter().flatten().any(|(name, value)| match (name.as_str(), value) {
        ("labels" | "annotations", Value::Object(map)) => map.is_empty() || has_null(map),
        ("finalizers", Value::Array(list)) => list.is_empty(),
        ("ownerReferences", Value::Array(list)) => {
            list.is_empty() || list.iter().filter_map(Value::as_object).any(has_null)
        }
        ("generateName", Value::String(name)) => name.is_empty(),
        (
            "labels"
            | "annotations"
            | "finalizers"
            | "ownerReferences"
            | "generateName"
            | "deletionTimestamp"
            | "deletionGracePeriodSeconds",
            Value::Null,
        ) => true,
        _ => false,
    })
}
