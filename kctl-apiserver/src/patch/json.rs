//! JSON patch (RFC 6902) as kube-apiserver applies it: more lenient about missing values.
//!
//! Differences from RFC 6902. Clients of kube-apiserver can rely on all of them:
//!
//! - `replace` of a field that is absent adds it; `copy` from an absent field writes null; `test` of an absent field
//!   with null passes.
//! - Negative indexes count from the end, and leading zeros are ignored.
//! - A missing `value` is null, and everything before the first slash of a path is ignored.
//!
//! Upstream: `github.com/evanphx/json-patch`, as `jsonPatcher` of `k8s.io/apiserver/pkg/endpoints/handlers/patch.go`
//! uses it.

use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::PointerBuf};
use kctl_webhook::client::{PATCH_OPERATIONS_MAX, normalize_operation};
use serde_json::{Map, Value};

use super::bounds::PatchBounds;
use crate::decode::type_error;

/// The reason why a JSON patch was not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonPatchError {
    /// The patch is not a list of operations.
    #[error("error decoding patch: {0}")]
    Undecodable(String),
    /// The patch has more operations than a server applies.
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is {PATCH_OPERATIONS_MAX}, got {0}"
    )]
    TooManyOperations(usize),
    /// An operation is unknown, does not fit the object, or copies too much data.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
}

/// Applies a JSON patch. `replace` may name a missing field, and copying a missing value writes null. The whole patch
/// is checked for its form before the first operation is applied.
///
/// # Errors
/// Returns a [`JsonPatchError`]. The effects of earlier operations remain in the object.
pub(crate) fn json_patch(object: &mut Value, patch: &[u8]) -> Result<(), JsonPatchError> {
    let operations = decode_operations(patch)?;
    let mut bounds = PatchBounds::for_object(object);
    for operation in operations {
        let reads = operation["op"] == "move" || operation["op"] == "copy";
        if !is_path(&operation["path"]) || (reads && !is_path(&operation["from"])) {
            return Err(JsonPatchError::Rejected);
        }
        let operation: PatchOperation =
            serde_json::from_value(normalize_operation(object, operation)).map_err(|_| JsonPatchError::Rejected)?;
        // `test` of an absent value compares with null.
        if matches!(&operation, PatchOperation::Test(test) if test.value.is_null() && can_add(object, test.path.as_str()))
        {
            continue;
        }
        let operation = lenient(object, operation);
        bounds.charge(object, &operation).map_err(|_| JsonPatchError::Rejected)?;
        json_patch::patch(object, &Patch(vec![operation])).map_err(|_| JsonPatchError::Rejected)?;
    }
    Ok(())
}

/// Returns the operations of a patch, each an object or null. `null` is an empty patch.
fn decode_operations(patch: &[u8]) -> Result<Vec<Value>, JsonPatchError> {
    let parsed = crate::decode::json(patch).map_err(JsonPatchError::Undecodable)?;
    let type_error =
        |path: &str, expected: &str, value: &Value| Err(JsonPatchError::Undecodable(type_error(path, expected, value)));
    let operations = match parsed {
        Value::Null => return Ok(Vec::new()),
        Value::Array(operations) => operations,
        other => return type_error("body", "a list of operations", &other),
    };
    for (index, operation) in operations.iter().enumerate() {
        if !operation.is_object() && !operation.is_null() {
            return type_error(&format!("[{index}]"), "an object", operation);
        }
        for field in ["op", "path", "from"] {
            let value = &operation[field];
            if !value.is_string() && !value.is_null() {
                return type_error(&format!("[{index}].{field}"), "a string", value);
            }
        }
    }
    if operations.len() > PATCH_OPERATIONS_MAX {
        return Err(JsonPatchError::TooManyOperations(operations.len()));
    }
    Ok(operations)
}

/// Fields of an operation.
const FIELDS: [&str; 4] = ["op", "path", "from", "value"];

/// Returns warnings about unknown and duplicate fields of the operations. Reported by `fieldValidation`. Duplicates of
/// unknown fields are not.
pub(crate) fn unknown_and_duplicate_fields(patch: &[u8]) -> Vec<String> {
    let parsed = crate::decode::json(patch).unwrap_or_default();
    let operations = parsed.as_array().into_iter().flatten().enumerate();
    let unknown = operations.flat_map(|(index, operation)| {
        let names = operation.as_object().into_iter().flat_map(Map::keys);
        let unknown = names.filter(|name| !FIELDS.contains(&name.as_str()));
        unknown.map(move |name| format!("json patch unknown field \"[{index}].{name}\"")).collect::<Vec<_>>()
    });
    let is_own = |path: &String| path.split_once("].").is_some_and(|(_, name)| FIELDS.contains(&name));
    let repeated = crate::decode::duplicates(patch).into_iter().filter(is_own);
    repeated.map(|path| format!("json patch duplicate field \"{path}\"")).chain(unknown).collect()
}

/// Returns `true` for a path with a slash. Everything before the first slash is ignored (`findObject` of
/// `evanphx/json-patch`).
fn is_path(path: &Value) -> bool {
    path.as_str().is_some_and(|path| path.contains('/'))
}

/// Returns the operation that upstream performs if the target does not exist.
pub(crate) fn lenient(object: &Value, operation: PatchOperation) -> PatchOperation {
    let add = |path: PointerBuf, value: Value| PatchOperation::Add(AddOperation { path, value });
    match operation {
        PatchOperation::Replace(replace) if can_add(object, replace.path.as_str()) => add(replace.path, replace.value),
        PatchOperation::Copy(copy) if can_add(object, copy.from.as_str()) => add(copy.path, Value::Null),
        other => other,
    }
}

/// Returns `true` if the path has no value, but its parent is a map.
fn can_add(object: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    object.pointer(path).is_none() && parent.is_some_and(Value::is_object)
}
