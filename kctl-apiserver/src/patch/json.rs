//! JSON patches as the real server reads them: more lenient than RFC 6902 about what is not there.

use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::PointerBuf};
use serde_json::Value;

/// Why a JSON patch was not applied.
#[derive(Debug, thiserror::Error)]
pub enum JsonPatchError {
    /// It is no list of operations.
    #[error("error decoding patch: {0}")]
    Undecodable(String),
    /// An operation is unknown, or does not fit the object.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
}

/// Applies a patch: a replaced field need not be there, and a copied one that is not there is null.
///
/// # Errors
/// See [`JsonPatchError`]; what was done by the operations before is left in the object.
pub fn json_patch(object: &mut Value, patch: &[u8]) -> Result<(), JsonPatchError> {
    let parsed: Value = serde_json::from_slice(patch).map_err(|error| {
        let why = if error.is_eof() { "unexpected end of JSON input".into() } else { error.to_string() };
        JsonPatchError::Undecodable(why)
    })?;
    if !parsed.is_array() {
        let found = crate::go::json_type(&parsed);
        let why = format!("json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp");
        return Err(JsonPatchError::Undecodable(why));
    }
    let patch: Patch = serde_json::from_value(parsed).map_err(|_| JsonPatchError::Rejected)?;
    for operation in patch.0 {
        let operation = lenient(object, operation);
        json_patch::patch(object, &Patch(vec![operation])).map_err(|_| JsonPatchError::Rejected)?;
    }
    Ok(())
}

/// What the real server makes of an operation on something that is not there.
pub(crate) fn lenient(object: &Value, operation: PatchOperation) -> PatchOperation {
    let add = |path: PointerBuf, value: Value| PatchOperation::Add(AddOperation { path, value });
    match operation {
        PatchOperation::Replace(replace) if could_have(object, replace.path.as_str()) => {
            add(replace.path, replace.value)
        }
        PatchOperation::Copy(copy) if could_have(object, copy.from.as_str()) => add(copy.path, Value::Null),
        other => other,
    }
}

/// Whether nothing is at a place, and a map is there for it.
fn could_have(object: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    object.pointer(path).is_none() && parent.is_some_and(Value::is_object)
}
