//! Limits of JSON patches: the bytes that operations may copy, and the depth of the result. Checked before each
//! operation.

use json_patch::PatchOperation;
use kctl_webhook::client::{CopyBudget, CopyLimitError};
use serde_json::Value;

use crate::{decode::DEPTH_MAX, json_path::depth};

/// The reason why an operation is rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutOfBounds {
    /// The copies of the patch are too large together (`jsonpatch.AccumulatedCopySizeLimit`).
    #[error(transparent)]
    Copied(#[from] CopyLimitError),
    /// The object would be nested deeper than decoding allows. Operations can move values below one another, so a short
    /// patch could otherwise overflow the stack of recursive code that visits the object.
    #[error("the patched object would be nested more than {DEPTH_MAX} deep")]
    Depth,
}

/// Bounds of one patch: bytes that are copied, and levels of the object.
pub(crate) struct PatchBounds {
    /// Bytes are counted in the JSON of the copied values.
    copies: CopyBudget,
    /// An upper bound of the object's depth. Measured again only if it exceeds the limit.
    depth: usize,
}

impl PatchBounds {
    /// Creates the limits for an object. Each patch has its own limits, which apply to all of its operations together.
    pub(crate) fn for_object(object: &Value) -> Self {
        Self { copies: CopyBudget::default(), depth: depth(object) }
    }

    /// Checks and charges an operation. `object` is the state before the operation. Removing and testing are free.
    ///
    /// # Errors
    /// Fails if the operation must not be applied.
    pub(crate) fn charge(&mut self, object: &Value, operation: &PatchOperation) -> Result<(), OutOfBounds> {
        let levels = |path: &str| path.matches('/').count();
        let (path, below) = match operation {
            PatchOperation::Add(add) => (add.path.as_str(), depth(&add.value)),
            PatchOperation::Replace(replace) => (replace.path.as_str(), depth(&replace.value)),
            PatchOperation::Move(moved) => {
                (moved.path.as_str(), self.depth.saturating_sub(levels(moved.from.as_str())))
            }
            PatchOperation::Copy(copy) => {
                let copied = object.pointer(copy.from.as_str());
                self.copies.charge(copied)?;
                (copy.path.as_str(), copied.map_or(0, depth))
            }
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
        };
        let mut reached = levels(path) + below;
        if reached > DEPTH_MAX
            && let PatchOperation::Move(moved) = operation
        {
            self.depth = depth(object);
            reached = levels(path) + object.pointer(moved.from.as_str()).map_or(0, depth);
        }
        self.depth = self.depth.max(reached);
        if reached > DEPTH_MAX { Err(OutOfBounds::Depth) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::json_patch, *};

    #[test]
    fn operations_move_values_no_deeper_than_the_limit() {
        let nested = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({ "a": value }));
        let path = |levels: usize| "/a".repeat(levels);
        let mut object = json!({ "x": {} });
        let mut n_done = 0;
        for _ in 0..100 {
            let patch = json!([
                { "op": "add", "path": "/y", "value": nested(30) },
                { "op": "move", "from": "/x", "path": format!("/y{}", path(31)) },
                { "op": "move", "from": "/y", "path": "/x" },
            ]);
            if json_patch(&mut object, patch.to_string().as_bytes()).is_err() {
                break;
            }
            n_done += 1;
        }
        assert_eq!(n_done, 4);
        assert!(depth(&object) <= DEPTH_MAX, "{}", depth(&object));
        // An operation that does not increase the depth is always allowed.
        json_patch(&mut object, br#"[{"op": "add", "path": "/z", "value": {}}, {"op": "remove", "path": "/x"}]"#)
            .unwrap();
    }
}
