//! The key of an object among the objects of its resource.

use serde_json::Value;

/// Namespace and name. The namespace is empty for a cluster-scoped object.
pub(crate) type Key = (String, String);

/// Returns the key of an object.
pub(crate) fn object_key(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
