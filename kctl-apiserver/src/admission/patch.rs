//! JSON patches of webhooks and policies, with the errors of the library that the real server applies them with.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::{
    decode, go,
    patch::{
        PatchBounds,
        json::{addressed, lenient},
    },
};

/// Why an answer cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatchError {
    /// It is no patch.
    Undecodable(String),
    /// It does not fit the object.
    Inapplicable(String),
}

const OPERATIONS: [&str; 6] = ["add", "copy", "move", "remove", "replace", "test"];

/// Applies a patch: all of it, or nothing.
pub(super) fn apply(object: &mut Value, patch: &[u8]) -> Result<(), PatchError> {
    let parsed = decode::json(patch).map_err(PatchError::Undecodable)?;
    let operations = match parsed {
        Value::Null => return Ok(()),
        Value::Array(operations) => operations,
        other => return Err(undecodable(&other, "Patch")),
    };
    if let Some(other) = operations.iter().find(|one| !one.is_object() && !one.is_null()) {
        return Err(undecodable(other, "Operation"));
    }
    let inapplicable = |why: String| Err(PatchError::Inapplicable(why));
    let mut patched = object.clone();
    let mut bounds = PatchBounds::of(&patched);
    for operation in operations {
        let kind = operation["op"].as_str().unwrap_or("unknown").to_owned();
        if !OPERATIONS.contains(&kind.as_str()) {
            return inapplicable(format!("Unexpected kind: {kind}"));
        }
        let Some(path) = operation["path"].as_str().map(str::to_owned) else {
            return inapplicable(format!("{kind} operation failed to decode path: missing value"));
        };
        if path.is_empty() && kind == "add" {
            return inapplicable(format!("add operation does not apply: doc is missing path: \"\": {MISSING}"));
        }
        if path.is_empty() && kind == "replace" && !operation["value"].is_object() && !operation["value"].is_array() {
            return inapplicable("replace operation value must be object or array: %!w(<nil>)".into());
        }
        // Without a slash it leads nowhere.
        if !path.is_empty() && !path.contains('/') {
            return inapplicable(format!("{kind} operation does not apply: doc is missing path: {path:?}: {MISSING}"));
        }
        let operation: PatchOperation = match serde_json::from_value(addressed(&patched, operation)) {
            Ok(operation) => operation,
            Err(error) => return inapplicable(error.to_string()),
        };
        // What is not there is null.
        let is_null = matches!(&operation, PatchOperation::Test(test) if test.value.is_null());
        if is_null && has_parent(&patched, &path) && patched.pointer(&path).is_none() {
            continue;
        }
        let operation = lenient(&patched, operation);
        let why = why_not(&patched, &operation);
        // A destination that is missing is reported first.
        if why.is_none() {
            bounds.charge(&patched, &operation).map_err(|error| PatchError::Inapplicable(error.to_string()))?;
        }
        json_patch::patch(&mut patched, &Patch(vec![operation]))
            .map_err(|error| PatchError::Inapplicable(why.unwrap_or_else(|| error.to_string())))?;
    }
    *object = patched;
    Ok(())
}

/// What is JSON, and no patch.
fn undecodable(found: &Value, wanted: &str) -> PatchError {
    let found = go::json_type(found);
    PatchError::Undecodable(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"))
}

const MISSING: &str = "missing value";

/// Whether there is something that could have what a path leads to.
fn has_parent(object: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    parent.is_some_and(|parent| parent.is_object() || parent.is_array())
}

/// What is missing for an operation, as `evanphx/json-patch` says it.
fn why_not(object: &Value, operation: &PatchOperation) -> Option<String> {
    let parent = |path: &str| path.is_empty() || has_parent(object, path);
    let has = |path: &str| object.pointer(path).is_some();
    match operation {
        PatchOperation::Add(add) if !parent(add.path.as_str()) => {
            Some(format!("add operation does not apply: doc is missing path: {:?}: {MISSING}", add.path.as_str()))
        }
        PatchOperation::Add(add) => {
            let path = add.path.as_str();
            let (list, index) = path.rsplit_once('/')?;
            let list = object.pointer(list)?.as_array()?;
            (index.parse::<usize>().ok()? > list.len()).then(|| {
                format!(
                    "error in add for path: '{path}': Unable to access invalid index: {index}: invalid index referenced"
                )
            })
        }
        PatchOperation::Copy(copy) if has(copy.from.as_str()) && !parent(copy.path.as_str()) => Some(format!(
            "copy operation does not apply: doc is missing destination path: {}: {MISSING}",
            copy.path.as_str()
        )),
        PatchOperation::Remove(remove) if !parent(remove.path.as_str()) => {
            Some(format!("remove operation does not apply: doc is missing path: {:?}: {MISSING}", remove.path.as_str()))
        }
        PatchOperation::Remove(remove) if !has(remove.path.as_str()) => {
            let path = remove.path.as_str();
            let key = path.rsplit('/').next().unwrap_or_default();
            Some(format!("error in remove for path: '{path}': Unable to remove nonexistent key: {key}: {MISSING}"))
        }
        PatchOperation::Replace(replace) if !has(replace.path.as_str()) => {
            let what = if parent(replace.path.as_str()) { "key" } else { "path" };
            Some(format!(
                "replace operation does not apply: doc is missing {what}: {}: {MISSING}",
                replace.path.as_str()
            ))
        }
        PatchOperation::Move(moved) if !has(moved.from.as_str()) => {
            let key = moved.from.as_str().rsplit('/').next().unwrap_or_default();
            Some(format!("error in move for path: '{key}': Unable to remove nonexistent key: {key}: {MISSING}"))
        }
        PatchOperation::Test(test) if !parent(test.path.as_str()) => {
            Some(format!("test operation does not apply: is missing path: {}: {MISSING}", test.path.as_str()))
        }
        PatchOperation::Test(test) => Some(format!("testing value {} failed: test failed", test.path.as_str())),
        _ => None,
    }
}
