//! JSON patches of webhooks and policies, with the errors of the library that the real server applies them with.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::patch::json::lenient;

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
    let parsed: Value =
        serde_json::from_slice(patch).map_err(|error| PatchError::Undecodable(undecodable(patch, &error)))?;
    if parsed.is_null() {
        return Ok(());
    }
    let mut operations = parsed.as_array().into_iter().flatten().filter_map(|one| one["op"].as_str());
    if let Some(unknown) = operations.find(|operation| !OPERATIONS.contains(operation)) {
        return Err(PatchError::Inapplicable(format!("Unexpected kind: {unknown}")));
    }
    let parsed: Patch = serde_json::from_value(parsed).map_err(|error| PatchError::Undecodable(error.to_string()))?;
    let mut patched = object.clone();
    for operation in parsed.0 {
        let operation = lenient(&patched, operation);
        let why = why_not(&patched, &operation);
        json_patch::patch(&mut patched, &Patch(vec![operation]))
            .map_err(|error| PatchError::Inapplicable(why.unwrap_or_else(|| error.to_string())))?;
    }
    *object = patched;
    Ok(())
}

/// Where Go's decoder gives up on what begins like a literal; other errors have the words of this one.
fn undecodable(patch: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(patch);
    let text = text.trim_start();
    let literal = ["null", "true", "false"].into_iter().find(|literal| text.chars().next() == literal.chars().next());
    match (literal, text.chars().next()) {
        (Some(literal), _) => {
            let differs = text.chars().zip(literal.chars()).find(|(found, wanted)| found != wanted);
            differs.map_or_else(
                || error.to_string(),
                |(found, wanted)| format!("invalid character '{found}' in literal {literal} (expecting '{wanted}')"),
            )
        }
        (None, Some(first)) if !"[{\"-0123456789".contains(first) => {
            format!("invalid character '{first}' looking for beginning of value")
        }
        _ => error.to_string(),
    }
}

/// What is missing for an operation, as `evanphx/json-patch` says it.
fn why_not(object: &Value, operation: &PatchOperation) -> Option<String> {
    let parent = |path: &str| path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent)).is_some();
    let has = |path: &str| object.pointer(path).is_some();
    let missing = "missing value";
    match operation {
        PatchOperation::Add(add) if !parent(add.path.as_str()) => {
            Some(format!("add operation does not apply: doc is missing path: {:?}: {missing}", add.path.as_str()))
        }
        PatchOperation::Remove(remove) if !parent(remove.path.as_str()) => {
            Some(format!("remove operation does not apply: doc is missing path: {:?}: {missing}", remove.path.as_str()))
        }
        PatchOperation::Remove(remove) if !has(remove.path.as_str()) => {
            let path = remove.path.as_str();
            let key = path.rsplit('/').next().unwrap_or_default();
            Some(format!("error in remove for path: '{path}': Unable to remove nonexistent key: {key}: {missing}"))
        }
        PatchOperation::Replace(replace) if !has(replace.path.as_str()) => {
            let what = if parent(replace.path.as_str()) { "key" } else { "path" };
            Some(format!(
                "replace operation does not apply: doc is missing {what}: {}: {missing}",
                replace.path.as_str()
            ))
        }
        PatchOperation::Test(test) => Some(format!("testing value {} failed: test failed", test.path.as_str())),
        _ => None,
    }
}
