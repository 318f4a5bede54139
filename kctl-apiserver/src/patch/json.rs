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
    let parsed = crate::decode::json(patch).map_err(JsonPatchError::Undecodable)?;
    if !parsed.is_array() && !parsed.is_null() {
        let found = crate::go::json_type(&parsed);
        let why = format!("json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp");
        return Err(JsonPatchError::Undecodable(why));
    }
    let Value::Array(operations) = parsed else { return Ok(()) };
    if let Some(other) = operations.iter().find(|one| !one.is_object() && !one.is_null()) {
        let found = crate::go::json_type(other);
        let why = format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp");
        return Err(JsonPatchError::Undecodable(why));
    }
    for (operation, field) in operations.iter().flat_map(|one| ["op", "path", "from"].map(|field| (one, field))) {
        let given = &operation[field];
        if !given.is_string() && !given.is_null() {
            let found = crate::go::json_type(given);
            let why = format!("json: cannot unmarshal {found} into Go struct field jsonPatchOp.{field} of type string");
            return Err(JsonPatchError::Undecodable(why));
        }
    }
    for operation in operations {
        let operation: PatchOperation =
            serde_json::from_value(addressed(object, operation)).map_err(|_| JsonPatchError::Rejected)?;
        let writes_all = operation.path().is_root() && !matches!(operation, PatchOperation::Test(_));
        if writes_all {
            return Err(JsonPatchError::Rejected);
        }
        // What is not there is null.
        if matches!(&operation, PatchOperation::Test(test) if test.value.is_null() && object.pointer(test.path.as_str()).is_none())
        {
            continue;
        }
        let operation = lenient(object, operation);
        json_patch::patch(object, &Patch(vec![operation])).map_err(|_| JsonPatchError::Rejected)?;
    }
    Ok(())
}

/// An operation with its value, which is null when it is left out, and with indexes as RFC 6902 writes them.
pub(crate) fn addressed(object: &Value, mut operation: Value) -> Value {
    let is_add = operation["op"] == "add";
    if ["add", "replace", "test"].iter().any(|op| operation["op"] == **op) && operation.get("value").is_none() {
        operation["value"] = Value::Null;
    }
    let to_new = is_add || operation["op"] == "move" || operation["op"] == "copy";
    for (field, is_new) in [("path", to_new), ("from", false)] {
        if let Some(path) = operation[field].as_str() {
            operation[field] = counted(object, path, is_new).into();
        }
    }
    operation
}

/// A path with indexes that count from the start. The real server reads numbers with zeros before them, and negative ones from
/// the end, which is behind the last item for what is added.
fn counted(object: &Value, path: &str, is_new: bool) -> String {
    let (mut at, mut counted) = (Some(object), String::new());
    let n_steps = path.matches('/').count();
    for (number, step) in path.split('/').skip(1).enumerate() {
        let list = at.and_then(Value::as_array);
        let index = list.zip(step.parse::<i64>().ok()).map(|(list, index)| {
            let len = list.len() + usize::from(is_new && number + 1 == n_steps);
            if index < 0 { i64::try_from(len).unwrap_or(0) + index } else { index }
        });
        let step = index.map_or_else(|| step.to_owned(), |index| index.to_string());
        at = at.and_then(|at| at.pointer(&format!("/{step}")));
        counted = format!("{counted}/{step}");
    }
    // Without a slash at its start it is no path, for the parser to refuse.
    if path.starts_with('/') { counted } else { path.to_owned() }
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
