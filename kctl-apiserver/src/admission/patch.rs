//! JSON patches of webhooks and policies, applied as the library `evanphx/json-patch` does.
//!
//! The library is more lenient than RFC 6902 in some places and stricter in others; `patch::json` has the common rules.
//! Patches of clients are applied by `crate::patch`, with the same bounds on memory.

use json_patch::{Patch, PatchOperation};
use kctl_webhook::client::normalize_operation;
use serde_json::Value;

use crate::{
    decode,
    patch::{PatchBounds, json::lenient},
};

/// The reason why a patch was not applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatchError {
    /// The bytes are not a JSON patch. For a webhook, `failurePolicy` applies.
    Undecodable(String),
    /// An operation does not fit the object. For a webhook, this is always an error.
    Inapplicable(String),
    /// A `test` operation found another value. A policy ignores it.
    TestFailed(String),
}

/// The operations of RFC 6902.
const OPERATIONS: [&str; 6] = ["add", "copy", "move", "remove", "replace", "test"];

/// Applies a patch, completely or not at all.
///
/// `null` is an empty patch. Operations are applied to a copy, which replaces the object at the
/// end. Copies are charged against `PatchBounds`, since a few operations can multiply an object.
pub(super) fn apply(object: &mut Value, patch: &[u8]) -> Result<(), PatchError> {
    let parsed = decode::json(patch).map_err(PatchError::Undecodable)?;
    let operations = match parsed {
        Value::Null => return Ok(()),
        Value::Array(operations) => operations,
        other => return Err(PatchError::Undecodable(decode::type_error("patch", "a list of operations", &other))),
    };
    if let Some(other) = operations.iter().find(|candidate| !candidate.is_object() && !candidate.is_null()) {
        return Err(PatchError::Undecodable(decode::type_error("patch", "a list of objects", other)));
    }
    let inapplicable = |why: String| Err(PatchError::Inapplicable(why));
    let mut patched = object.clone();
    let mut bounds = PatchBounds::for_object(&patched);
    for operation in operations {
        let kind = operation["op"].as_str().unwrap_or("unknown").to_owned();
        if !OPERATIONS.contains(&kind.as_str()) {
            return inapplicable(format!("op: must be one of {}, found {kind:?}", OPERATIONS.join(", ")));
        }
        let Some(path) = operation["path"].as_str().map(str::to_owned) else {
            return inapplicable(format!("{kind} operation has no path"));
        };
        let replaces_by_scalar = kind == "replace" && !operation["value"].is_object() && !operation["value"].is_array();
        if path.is_empty() && (kind == "add" || replaces_by_scalar) {
            return inapplicable(format!("{kind} operation cannot change the whole object"));
        }
        // A path without a slash names no value.
        if !path.is_empty() && !path.contains('/') {
            return inapplicable(format!("{kind} operation: path {path:?} must begin with a slash"));
        }
        let operation: PatchOperation = serde_json::from_value(normalize_operation(&patched, operation))
            .map_err(|error| PatchError::Inapplicable(error.to_string()))?;
        // `test` of an absent value compares with null.
        let is_null = matches!(&operation, PatchOperation::Test(test) if test.value.is_null());
        if is_null && has_parent(&patched, &path) && patched.pointer(&path).is_none() {
            continue;
        }
        let operation = lenient(&patched, operation);
        bounds.charge(&patched, &operation).map_err(|error| PatchError::Inapplicable(error.to_string()))?;
        let is_test = kind == "test" && (path.is_empty() || has_parent(&patched, &path));
        json_patch::patch(&mut patched, &Patch(vec![operation])).map_err(|error| {
            let why = format!("{kind} operation on {path:?}: {}", error.kind);
            if is_test { PatchError::TestFailed(why) } else { PatchError::Inapplicable(why) }
        })?;
    }
    *object = patched;
    Ok(())
}

/// Returns `true` if the parent of a path is an object or a list. Otherwise a failed `test` is an inapplicable
/// operation and not a comparison.
fn has_parent(object: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    parent.is_some_and(|parent| parent.is_object() || parent.is_array())
}
