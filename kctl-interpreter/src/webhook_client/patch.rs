//! Patches of responses: applies a JSON patch (RFC 6902) with the rules of the Go library that Karmada uses
//! (`applyPatch` in `pkg/resourceinterpreter/customized/webhook/customized.go`, by `github.com/evanphx/json-patch/v5`).
//!
//! More than RFC 6902 it accepts `null` as an empty patch, `test` of an absent key with null or without a value,
//! negative indexes, leading zeros, and anything before the first slash of a path.

use std::fmt::Display;

use json_patch::{AddOperation, PatchErrorKind, PatchOperation, ReplaceOperation};
use kctl_webhook::client::{CopyBudget, PATCH_OPERATIONS_MAX, normalize_operation};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::verify::WebhookReply;
use crate::operation::{self, Operation};

/// Maximum levels of nesting of a patched object: the depth at which `serde_json` stops reading. Each operation may nest
/// its value in the value of an earlier one, and code that visits a much deeper object overflows its stack.
const DEPTH_MAX: usize = 128;

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
/// - An operation nests the object more than [`DEPTH_MAX`] deep.
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
    let steps = decode_operations(&patch)?;
    let is_empty = steps.is_empty();
    let mut copies = CopyBudget::default();
    for step in steps {
        if Instant::now() >= until {
            return Err("response.patch is not applied within the timeout of the webhook".into());
        }
        apply_operation(&mut patched, step, &mut copies)?;
    }
    if !is_empty && patched["kind"].as_str().is_none_or(str::is_empty) {
        return Err(operation::kind_missing(object));
    }
    Ok(operation::field(operation, patched))
}

/// Returns the operations of a patch, each with the fields that it needs. `null` is an empty patch.
fn decode_operations(patch: &[u8]) -> Result<Vec<Value>, String> {
    if patch.is_empty() {
        return Ok(Vec::new());
    }
    let undecodable = |problem: String| format!("response.patch is not a JSON patch: {problem}");
    let operations: Option<Vec<Value>> =
        serde_json::from_slice(patch).map_err(|error| undecodable(error.to_string()))?;
    let operations = operations.unwrap_or_default();
    if operations.len() > PATCH_OPERATIONS_MAX {
        let n_operations = operations.len();
        return Err(format!("response.patch has {n_operations} operations, more than {PATCH_OPERATIONS_MAX}"));
    }
    for (idx, operation) in operations.iter().enumerate() {
        let missing = match operation["op"].as_str() {
            Some("add" | "replace") if operation.get("value").is_none() => "value",
            Some("move" | "copy") if !operation["from"].is_string() => "from",
            Some("add" | "replace" | "move" | "copy" | "remove" | "test") if !operation["path"].is_string() => "path",
            Some("add" | "replace" | "move" | "copy" | "remove" | "test") => continue,
            _ => return Err(undecodable(format!("[{idx}]: unsupported operation {}", operation["op"]))),
        };
        return Err(undecodable(format!("[{idx}]: missing field `{missing}`")));
    }
    Ok(operations)
}

/// Applies one operation. After an error, the document may be half changed.
fn apply_operation(document: &mut Value, sent: Value, copies: &mut CopyBudget) -> Result<(), String> {
    let (name, from, path) = (string(&sent, "op"), string(&sent, "from"), string(&sent, "path"));
    let has_from = name == "move" || name == "copy";
    let inapplicable = |problem: &dyn Display| {
        let paths = if has_from { format!("from {from:?} to {path:?}") } else { format!("on {path:?}") };
        format!("{name} operation {paths}: {problem}")
    };
    let lacks_slash = |path: &str| !path.is_empty() && !path.contains('/');
    if lacks_slash(&path) || (has_from && lacks_slash(&from)) {
        return Err(inapplicable(&"a path must have a slash"));
    }
    if name == "move" {
        return apply_move(document, &from, &path).map_err(|problem| inapplicable(&problem));
    }
    let step = decode_operation(normalize_operation(document, sent))?;
    match &step {
        // An absent key equals null; an absent item of a list is an error.
        PatchOperation::Test(test) if test.value.is_null() && is_absent_key(document, test.path.as_str()) => {
            return Ok(());
        }
        PatchOperation::Copy(copy) => {
            let copied = document.pointer(copy.from.as_str());
            copies.charge(copied).map_err(|error| format!("response.patch copies too much: {error}"))?;
            check_depth(&path, copied.unwrap_or(&Value::Null)).map_err(|problem| inapplicable(&problem))?;
        }
        PatchOperation::Add(AddOperation { value, .. }) | PatchOperation::Replace(ReplaceOperation { value, .. }) => {
            check_depth(&path, value).map_err(|problem| inapplicable(&problem))?;
        }
        _ => {}
    }
    json_patch::patch(document, std::slice::from_ref(&step)).map_err(|error| inapplicable(&error.kind))
}

/// Moves a value. The index of its new place counts without it.
fn apply_move(document: &mut Value, from: &str, path: &str) -> Result<(), String> {
    if from.is_empty() {
        return Err("the whole object can't be moved".into());
    }
    let remove = decode_operation(normalize_operation(document, json!({ "op": "remove", "path": from })))?;
    let moved = document.pointer_mut(remove.path().as_str()).map(Value::take);
    let moved = moved.ok_or_else(|| PatchErrorKind::InvalidFromPointer.to_string())?;
    check_depth(path, &moved)?;
    let mut add = json!({ "op": "add", "path": path });
    add["value"] = moved;
    let failed = |error: json_patch::PatchError| error.kind.to_string();
    json_patch::patch(document, &[remove]).map_err(failed)?;
    let add = decode_operation(normalize_operation(document, add))?;
    json_patch::patch(document, &[add]).map_err(failed)
}

/// Returns an error if the object would be nested too deep with a value at this path.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    if path.matches('/').count() + depth(value) > DEPTH_MAX {
        return Err(format!("the object would be nested more than {DEPTH_MAX} deep"));
    }
    Ok(())
}

/// Returns the number of objects and lists that are nested in each other; 0 for a scalar.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn decode_operation(operation: Value) -> Result<PatchOperation, String> {
    serde_json::from_value(operation).map_err(|error| format!("response.patch is not a JSON patch: {error}"))
}

/// Returns a string of an operation; empty if it is absent.
fn string(operation: &Value, field: &str) -> String {
    operation[field].as_str().unwrap_or_default().to_owned()
}

/// Returns `true` if the parent of a path is an object without its key.
fn is_absent_key(document: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _key)| document.pointer(parent));
    parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
}

#[cfg(test)]
mod tests {
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
    fn forms_beyond_the_rfc_are_applied() {
        let object = json!({ "kind": "A", "list": [1, 2, 3], "map": { "old": 1 } });
        let list = |items: &Value| json!({ "kind": "A", "list": items, "map": { "old": 1 } });
        for (patch, expected) in [
            (json!(null), object.clone()),
            (json!([{ "op": "test", "path": "/map/x", "value": null }]), object.clone()),
            (json!([{ "op": "test", "path": "/map/x" }]), object.clone()),
            (json!([{ "op": "replace", "path": "/list/-1", "value": 4 }]), list(&json!([1, 2, 4]))),
            (json!([{ "op": "add", "path": "/list/-1", "value": 4 }]), list(&json!([1, 2, 3, 4]))),
            (json!([{ "op": "remove", "path": "/list/01" }]), list(&json!([1, 3]))),
            (json!([{ "op": "move", "from": "/list/-3", "path": "/list/-1" }]), list(&json!([2, 3, 1]))),
            (json!([{ "op": "copy", "from": "/list/00", "path": "/list/-" }]), list(&json!([1, 2, 3, 1]))),
            (json!([{ "op": "replace", "path": "object/list/0", "value": 0 }]), list(&json!([0, 2, 3]))),
        ] {
            let answer = WebhookReply::Patch(patch.to_string().into_bytes());
            let answer = apply_patch(Operation::Retain, &object, answer, soon());
            assert_eq!(answer, Ok(json!({ "retained": expected })), "{patch}");
        }
    }

    #[test]
    fn failed_patch_names_the_missing_path() {
        let cases = [
            (
                json!([{ "op": "replace", "path": "/a/b", "value": 1 }]),
                "replace operation on \"/a/b\": path is invalid",
            ),
            (
                json!([{ "op": "replace", "path": "/spec/b", "value": 1 }]),
                "replace operation on \"/spec/b\": path is invalid",
            ),
            (json!([{ "op": "add", "path": "/a/b", "value": 1 }]), "add operation on \"/a/b\": path is invalid"),
            (
                json!([{ "op": "add", "path": "/spec/list/7", "value": 1 }]),
                "add operation on \"/spec/list/7\": path is invalid",
            ),
            (json!([{ "op": "remove", "path": "/spec/b" }]), "remove operation on \"/spec/b\": path is invalid"),
            (
                json!([{ "op": "test", "path": "/spec/replicas", "value": 3 }]),
                "test operation on \"/spec/replicas\": value did not match",
            ),
            (json!([{ "op": "test", "path": "/a/b", "value": 3 }]), "test operation on \"/a/b\": path is invalid"),
            (
                json!([{ "op": "move", "from": "/a", "path": "/b" }]),
                "move operation from \"/a\" to \"/b\": \"from\" path is invalid",
            ),
            (
                json!([{ "op": "move", "from": "", "path": "/b" }]),
                "move operation from \"\" to \"/b\": the whole object",
            ),
            (
                json!([{ "op": "copy", "from": "/spec", "path": "/a/b" }]),
                "copy operation from \"/spec\" to \"/a/b\": path is invalid",
            ),
            (
                json!([{ "op": "test", "path": "/spec/replicas" }]),
                "test operation on \"/spec/replicas\": value did not match",
            ),
            (
                json!([{ "op": "test", "path": "/spec/list/7", "value": null }]),
                "test operation on \"/spec/list/7\": path is invalid",
            ),
            (
                json!([{ "op": "add", "path": "/spec/list/-3", "value": 1 }]),
                "add operation on \"/spec/list/-3\": path is invalid",
            ),
            (
                json!([{ "op": "move", "from": "/spec", "path": "/spec/a" }]),
                "move operation from \"/spec\" to \"/spec/a\": path is invalid",
            ),
            (json!([{ "op": "remove", "path": "spec" }]), "remove operation on \"spec\": a path must have a slash"),
            (
                json!([{ "op": "copy", "from": "spec", "path": "/b" }]),
                "copy operation from \"spec\" to \"/b\": a path must have a slash",
            ),
            (json!([{ "op": "remove", "path": "/kind" }]), "Object 'Kind' is missing in the answer for A "),
        ];
        for (patch, expected) in cases {
            check_problem(&patch, expected);
        }
    }

    #[test]
    fn malformed_patch_is_rejected() {
        let unsupported = "response.patch is not a JSON patch: [0]: unsupported operation";
        for (patch, expected) in [
            (json!([{ "op": "add", "path": "/a" }]), "response.patch is not a JSON patch: [0]: missing field `value`"),
            (json!([{ "op": "merge", "path": "/a" }]), unsupported),
            (json!([null]), unsupported),
            (json!({}), "response.patch is not a JSON patch: "),
        ] {
            check_problem(&patch, expected);
        }
    }

    fn check_problem(patch: &Value, expected: &str) {
        let answer = WebhookReply::Patch(patch.to_string().into_bytes());
        let problem = apply_patch(Operation::Retain, &object_of_spec(1), answer, soon()).unwrap_err();
        assert!(problem.starts_with(expected), "{patch}: {problem}");
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
    fn operations_nest_no_deeper_than_the_limit() {
        let nested = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({ "a": value }));
        let path = |levels: usize| "/a".repeat(levels);
        let add = |path: &str, levels| json!({ "op": "add", "path": path, "value": nested(levels) });
        let from_x = |op: &str| json!({ "op": op, "from": "/x", "path": path(67) });
        // `nested(65)` has 66 levels.
        for (patch, is_applied) in [
            (json!([add("/a", 60), add(&path(62), 65)]), true),
            (json!([add("/a", 60), add(&path(62), 66)]), false),
            (json!([add("/a", 60), { "op": "replace", "path": path(61), "value": nested(67) }]), false),
            (json!([add("/a", 65), add("/x", 60), from_x("copy")]), true),
            (json!([add("/a", 65), add("/x", 61), from_x("copy")]), false),
            (json!([add("/a", 65), add("/x", 60), from_x("move")]), true),
            (json!([add("/a", 65), add("/x", 61), from_x("move")]), false),
        ] {
            let answer = WebhookReply::Patch(patch.to_string().into_bytes());
            let problem = apply_patch(Operation::Retain, &json!({ "kind": "A" }), answer, soon()).err();
            let is_right = match &problem {
                Some(problem) => !is_applied && problem.ends_with(": the object would be nested more than 128 deep"),
                None => is_applied,
            };
            assert!(is_right, "{patch}: {problem:?}");
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
