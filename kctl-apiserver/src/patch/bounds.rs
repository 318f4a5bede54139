//! Limits of JSON patches: the bytes that operations may copy, the items that they may move, and the depth of the
//! result. Checked before each operation.

use json_patch::PatchOperation;
use kctl_webhook::client::{CopyBudget, CopyLimitError};
use serde_json::Value;

use crate::{decode::DEPTH_MAX, json_path::depth};

/// The number of list items that the operations of one patch may move: an item that is inserted or removed moves those
/// behind it. Moving them takes a few seconds; 10,000 operations on a list of a million items would take minutes.
const MOVED_MAX: usize = 500_000_000;
/// The number of operations of one patch for which the depth of the whole object is measured. Only moves within an
/// object that is almost as deep as allowed need it.
const MEASURED_MAX: usize = 100;

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
    /// The operations move too many list items together.
    #[error("the operations move more than {MOVED_MAX} items of lists")]
    Moved,
}

/// Bounds of one patch: bytes that are copied, items that are moved, and levels of the object.
pub(crate) struct PatchBounds {
    /// Bytes are counted in the JSON of the copied values.
    copies: CopyBudget,
    /// An upper bound of the object's depth. Measured again only if it exceeds the limit.
    depth: usize,
    /// The number of times that `depth` was measured again. Invariant: at most [`MEASURED_MAX`].
    n_measured: usize,
    /// The number of list items that were moved.
    n_moved: usize,
}

impl PatchBounds {
    /// Creates the limits for an object. Each patch has its own limits, which apply to all of its operations together.
    pub(crate) fn for_object(object: &Value) -> Self {
        Self { copies: CopyBudget::default(), depth: depth(object), n_measured: 0, n_moved: 0 }
    }

    /// Checks and charges an operation. `object` is the state before the operation. Testing is free.
    ///
    /// # Errors
    /// Fails if the operation must not be applied.
    pub(crate) fn charge(&mut self, object: &Value, operation: &PatchOperation) -> Result<(), OutOfBounds> {
        self.charge_moved_items(object, operation)?;
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
            if self.n_measured == MEASURED_MAX {
                return Err(OutOfBounds::Depth);
            }
            self.n_measured += 1;
            self.depth = depth(object);
            reached = levels(path) + object.pointer(moved.from.as_str()).map_or(0, depth);
        }
        self.depth = self.depth.max(reached);
        if reached > DEPTH_MAX { Err(OutOfBounds::Depth) } else { Ok(()) }
    }

    /// Charges the list items behind those that an operation inserts or removes.
    fn charge_moved_items(&mut self, object: &Value, operation: &PatchOperation) -> Result<(), OutOfBounds> {
        let behind = |path: &str| {
            let (list, index) = path.rsplit_once('/')?;
            // An index `-` appends.
            let index: usize = index.parse().ok()?;
            Some(object.pointer(list)?.as_array()?.len().saturating_sub(index))
        };
        let n_moved = match operation {
            PatchOperation::Add(add) => behind(add.path.as_str()),
            PatchOperation::Copy(copy) => behind(copy.path.as_str()),
            PatchOperation::Remove(remove) => behind(remove.path.as_str()),
            PatchOperation::Move(moved) => {
                let ends = [moved.from.as_str(), moved.path.as_str()];
                Some(ends.into_iter().filter_map(behind).sum())
            }
            PatchOperation::Replace(_) | PatchOperation::Test(_) => None,
        };
        self.n_moved = self.n_moved.saturating_add(n_moved.unwrap_or(0));
        if self.n_moved > MOVED_MAX { Err(OutOfBounds::Moved) } else { Ok(()) }
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

    fn operation(json: Value) -> PatchOperation {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn items_behind_changed_ones_are_bounded() {
        let object = json!({ "a": vec![0; 1_000_000] });
        let mut bounds = PatchBounds::for_object(&object);
        let first = operation(json!({ "op": "remove", "path": "/a/0" }));
        for _ in 0..500 {
            assert_eq!(bounds.charge(&object, &first), Ok(()));
        }
        assert_eq!(bounds.charge(&object, &operation(json!({ "op": "add", "path": "/a/-", "value": 1 }))), Ok(()));
        assert_eq!(bounds.charge(&object, &first), Err(OutOfBounds::Moved));
    }

    #[test]
    fn deep_objects_are_measured_a_few_times() {
        let nested = (0..DEPTH_MAX - 2).fold(json!({}), |value, _| json!({ "a": value }));
        let object = json!({ "deep": nested, "b": {}, "c": { "d": {} } });
        let mut bounds = PatchBounds::for_object(&object);
        let moved = operation(json!({ "op": "move", "from": "/b", "path": "/c/d/e" }));
        for _ in 0..MEASURED_MAX {
            assert_eq!(bounds.charge(&object, &moved), Ok(()));
        }
        assert_eq!(bounds.charge(&object, &moved), Err(OutOfBounds::Depth));
    }
}
