//! Patches of responses: applies a JSON patch (RFC 6902) with the error messages of the Go library
//! that Karmada uses (`applyPatch` in `pkg/resourceinterpreter/customized/webhook/customized.go`, by
//! `github.com/evanphx/json-patch/v5`).

use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, RemoveOperation, ReplaceOperation,
    TestOperation, jsonptr::Pointer,
};
use kctl_webhook::client::{CopyBudget, PATCH_OPERATIONS_MAX};
use serde_json::Value;
use tokio::time::Instant;

use super::verify::WebhookReply;
use crate::operation::{self, Operation};

/// Returns the answer in the form that layers exchange: a patch becomes the patched object.
///
/// An empty patch leaves the object as it is. That is the response of a webhook that has nothing to
/// change.
///
/// # Errors
/// - The patch is not a JSON patch, or an operation does not apply to the object.
/// - The patched object has no `kind`.
/// - The patch copies more than [`CopyBudget`] allows, or has more than [`PATCH_OPERATIONS_MAX`]
///   operations. Karmada has neither bound, so there such a patch can use all memory.
/// - It is not applied by `until`, the deadline of the call. Adding to the front of a long list moves the whole list.
pub(super) fn apply_patch(
    operation: Operation,
    object: &Value,
    reply: WebhookReply,
    until: Instant,
) -> Result<Value, String> {
    let patch = match reply {
        WebhookReply::Whole(result) => return Ok(result),
        WebhookReply::Patch(patch) => patch,
    };
    let mut patched = object.clone();
    if !patch.is_empty() {
        let operations: Vec<PatchOperation> =
            serde_json::from_slice(&patch).map_err(|error| format!("response.patch is no JSON patch: {error}"))?;
        if operations.len() > PATCH_OPERATIONS_MAX {
            let n_operations = operations.len();
            return Err(format!("response.patch has {n_operations} operations, more than {PATCH_OPERATIONS_MAX}"));
        }
        let mut copies = CopyBudget::default();
        for step in &operations {
            if Instant::now() >= until {
                return Err("response.patch is not applied within the timeout of the webhook".into());
            }
            if let PatchOperation::Copy(copy) = step {
                let copied = patched.pointer(copy.from.as_str());
                copies.charge(copied).map_err(|error| format!("response.patch copies too much: {error}"))?;
            }
            json_patch::patch(&mut patched, std::slice::from_ref(step))
                .map_err(|error| patch_error_message(step, &error.kind, &patched))?;
        }
        if patched["kind"].as_str().is_none_or(str::is_empty) {
            return Err(operation::kind_missing(object));
        }
    }
    Ok(operation::field(operation, patched))
}

/// Returns the message of an operation that does not apply to a document, as `evanphx/json-patch`
/// words it.
fn patch_error_message(operation: &PatchOperation, kind: &PatchErrorKind, document: &Value) -> String {
    let has_parent = |path: &Pointer| has_parent(document, path.as_str());
    match operation {
        PatchOperation::Test(TestOperation { path, .. }) if has_parent(path) => {
            format!("testing value {path} failed: test failed")
        }
        PatchOperation::Test(TestOperation { path, .. }) => {
            format!("test operation does not apply: is missing path: {path}: missing value")
        }
        PatchOperation::Add(AddOperation { path, .. }) if has_parent(path) => {
            format!("error in add for path: '{path}': {}", index_error_message(path.as_str()))
        }
        PatchOperation::Add(AddOperation { path, .. }) => {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        PatchOperation::Remove(RemoveOperation { path }) if has_parent(path) => {
            let key = last(path.as_str());
            format!("error in remove for path: '{path}': unable to remove nonexistent key: {key}: missing value")
        }
        PatchOperation::Remove(RemoveOperation { path }) => {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        PatchOperation::Replace(ReplaceOperation { path, .. }) => {
            let missing = if has_parent(path) { "key" } else { "path" };
            format!("replace operation does not apply: doc is missing {missing}: {path}: missing value")
        }
        PatchOperation::Move(MoveOperation { from, path }) => {
            move_error_message("move", from.as_str(), path.as_str(), kind)
        }
        PatchOperation::Copy(CopyOperation { from, path }) => {
            move_error_message("copy", from.as_str(), path.as_str(), kind)
        }
    }
}

/// Returns the message of a `move` or `copy` that does not apply.
fn move_error_message(name: &str, from: &str, path: &str, kind: &PatchErrorKind) -> String {
    match kind {
        PatchErrorKind::InvalidFromPointer => {
            format!("{name} operation does not apply: doc is missing from path: {from}: missing value")
        }
        PatchErrorKind::CannotMoveInsideItself => format!("error in {name} for path: '{path}': {kind}"),
        _ => format!("{name} operation does not apply: doc is missing destination path: {path}: missing value"),
    }
}

/// Returns `true` if the parent of a path is an object or a list, so that only the last part is
/// wrong.
fn has_parent(document: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').map_or("", |(parent, _last)| parent);
    document.pointer(parent).is_some_and(|parent| parent.is_object() || parent.is_array())
}

fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_parent, last)| last)
}

/// Returns the message for a failed `add` whose parent exists: only an index of a list can be wrong
/// then.
fn index_error_message(path: &str) -> String {
    let index = last(path);
    if index.parse::<usize>().is_ok() {
        format!("Unable to access invalid index: {index}: invalid index referenced")
    } else {
        format!("value was not a proper array index: '{index}'")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + std::time::Duration::from_secs(60)
    }

    #[test]
    fn patch_after_the_deadline_is_not_applied() {
        let object = json!({ "kind": "A", "list": [] });
        let patch = json!([{ "op": "add", "path": "/list/0", "value": 0 }]).to_string().into_bytes();
        let applied = |until| apply_patch(Operation::Retain, &object, WebhookReply::Patch(patch.clone()), until);
        assert!(applied(soon()).is_ok());
        assert!(applied(Instant::now()).unwrap_err().contains("not applied within the timeout"));
    }

    fn object_of_spec(replicas: i32) -> Value {
        json!({ "kind": "A", "spec": { "list": [1], "replicas": replicas } })
    }

    #[test]
    fn operations_of_a_patch_are_applied_in_order() {
        let change = json!([{ "op": "test", "path": "/spec/replicas", "value": 1 }, { "op": "replace", "path": "/spec/replicas", "value": 2 }]);
        for (patch, expected) in [(json!([]), object_of_spec(1)), (change, object_of_spec(2))] {
            let answer = WebhookReply::Patch(patch.to_string().into_bytes());
            let answer = apply_patch(Operation::Retain, &object_of_spec(1), answer, soon()).unwrap();
            assert_eq!(answer["retained"], expected, "{patch}");
        }
    }

    #[test]
    fn failed_patch_names_the_missing_path() {
        let object = object_of_spec(1);
        let cases = [
            (
                json!([{ "op": "replace", "path": "/a/b", "value": 1 }]),
                "replace operation does not apply: doc is missing path: /a/b: missing value",
            ),
            (
                json!([{ "op": "replace", "path": "/spec/b", "value": 1 }]),
                "replace operation does not apply: doc is missing key: /spec/b: missing value",
            ),
            (
                json!([{ "op": "add", "path": "/a/b", "value": 1 }]),
                "add operation does not apply: doc is missing path: \"/a/b\": missing value",
            ),
            (
                json!([{ "op": "add", "path": "/spec/list/7", "value": 1 }]),
                "error in add for path: '/spec/list/7': Unable to access invalid index: 7: invalid index referenced",
            ),
            (
                json!([{ "op": "remove", "path": "/spec/b" }]),
                "error in remove for path: '/spec/b': unable to remove nonexistent key: b: missing value",
            ),
            (
                json!([{ "op": "remove", "path": "/a/b" }]),
                "remove operation does not apply: doc is missing path: \"/a/b\": missing value",
            ),
            (
                json!([{ "op": "test", "path": "/spec/replicas", "value": 3 }]),
                "testing value /spec/replicas failed: test failed",
            ),
            (
                json!([{ "op": "test", "path": "/a/b", "value": 3 }]),
                "test operation does not apply: is missing path: /a/b: missing value",
            ),
            (
                json!([{ "op": "move", "from": "/a", "path": "/b" }]),
                "move operation does not apply: doc is missing from path: /a: missing value",
            ),
            (
                json!([{ "op": "copy", "from": "/spec", "path": "/a/b" }]),
                "copy operation does not apply: doc is missing destination path: /a/b: missing value",
            ),
            (json!([{ "op": "remove", "path": "/kind" }]), "Object 'Kind' is missing in the answer for A "),
            (json!({}), "response.patch is no JSON patch: "),
        ];
        for (patch, expected) in cases {
            let answer = WebhookReply::Patch(patch.to_string().into_bytes());
            let problem = apply_patch(Operation::Retain, &object, answer, soon()).unwrap_err();
            assert!(problem.starts_with(expected), "{patch}: {problem}");
        }
    }

    #[test]
    fn patches_are_bounded_in_copies_and_operations() {
        let object = json!({ "kind": "A", "data": { "a": "x".repeat(100) } });
        let doubling = (0..40).map(|n| json!({ "op": "copy", "from": "/data", "path": format!("/data/c{n}") }));
        let doubling: Vec<Value> = doubling.collect();
        let test = |n| vec![json!({ "op": "test", "path": "/kind", "value": "A" }); n];
        for (patch, problem) in [
            (doubling[..10].to_vec(), None),
            (doubling, Some("response.patch copies too much: Unable to complete the copy, the accumulated size")),
            (test(PATCH_OPERATIONS_MAX), None),
            (test(PATCH_OPERATIONS_MAX + 1), Some("response.patch has 10001 operations, more than 10000")),
        ] {
            let answer = WebhookReply::Patch(Value::from(patch).to_string().into_bytes());
            let found = apply_patch(Operation::Retain, &object, answer, soon()).err();
            let fits = match problem {
                Some(start) => found.as_ref().is_some_and(|found| found.starts_with(start)),
                None => found.is_none(),
            };
            assert!(fits, "{found:?}, not {problem:?}");
        }
    }

    #[test]
    fn object_without_kind_is_named_but_not_shown() {
        let metadata = json!({ "namespace": "shop", "name": "db" });
        let secret = json!({ "kind": "Secret", "metadata": metadata, "data": { "password": "czNjcmV0" } });
        let patch = json!([{ "op": "remove", "path": "/kind" }]).to_string().into_bytes();
        let problem = apply_patch(Operation::Retain, &secret, WebhookReply::Patch(patch), soon()).unwrap_err();
        assert!(problem.contains("Secret shop/db: return the object with its `kind`"), "{problem}");
        assert!(!problem.contains("czNjcmV0"), "{problem}");
    }

    #[test]
    fn empty_patch_leaves_object_unchanged() {
        let object = json!({ "kind": "A" });
        let answer = apply_patch(Operation::Retain, &object, WebhookReply::Patch(Vec::new()), soon());
        assert_eq!(answer, Ok(json!({ "retained": object })));
    }
}
