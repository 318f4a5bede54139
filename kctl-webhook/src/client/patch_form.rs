//! Operations of JSON patches in the form of RFC 6902: `evanphx/json-patch`, which API servers and Karmada use, accepts
//! more.

use serde_json::Value;

/// The location of an operation: the element of the object to which its JSON pointer leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    /// An element that exists.
    Existing,
    /// An element that the operation adds. In an array it may be behind the last item.
    New,
}

/// Returns an operation with an absent value as null, and with array indexes as RFC 6902 writes them. Indexes depend on
/// the state of the object, so each operation is translated just before it is applied.
///
/// Everything before the first slash of a path is ignored: reject a path without a slash first, unless it is empty.
///
/// ```
/// use kctl_webhook::client::normalize_operation;
/// use serde_json::json;
///
/// let object = json!({ "list": [1, 2, 3] });
/// let operation = json!({ "op": "test", "path": "/list/-1" });
/// assert_eq!(normalize_operation(&object, operation), json!({ "op": "test", "path": "/list/2", "value": null }));
/// ```
#[must_use]
pub fn normalize_operation(object: &Value, mut operation: Value) -> Value {
    let is_add = operation["op"] == "add";
    if ["add", "replace", "test"].iter().any(|op| operation["op"] == **op) && operation.get("value").is_none() {
        operation["value"] = Value::Null;
    }
    let adds = is_add || operation["op"] == "move" || operation["op"] == "copy";
    let target = if adds { Location::New } else { Location::Existing };
    for (field, location) in [("path", target), ("from", Location::Existing)] {
        if let Some(path) = operation[field].as_str() {
            operation[field] = with_absolute_indexes(object, path, location).into();
        }
    }
    operation
}

/// Returns a path whose array indexes are nonnegative and have no leading zeros. kube-apiserver accepts leading zeros,
/// and counts negative indexes from the end. For an added item the end is behind the last one.
fn with_absolute_indexes(object: &Value, path: &str, location: Location) -> String {
    let (mut value, mut absolute) = (Some(object), String::new());
    let n_steps = path.matches('/').count();
    for (number, step) in path.split('/').skip(1).enumerate() {
        let list = value.and_then(Value::as_array);
        let index = list.zip(step.parse::<i64>().ok()).map(|(list, index)| {
            let is_added = location == Location::New && number + 1 == n_steps;
            let len = list.len() + usize::from(is_added);
            if index < 0 { i64::try_from(len).unwrap_or(0) + index } else { index }
        });
        let step = index.map_or_else(|| step.to_owned(), |index| index.to_string());
        value = value.and_then(|value| value.pointer(&format!("/{step}")));
        // Appended in place: a path may be as long as the body, and each copy of it would take quadratic time.
        absolute.push('/');
        absolute.push_str(&step);
    }
    absolute
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indexes_are_absolute_without_leading_zeros() {
        let object = json!({ "list": [1, 2, [3]], "map": { "-1": 1 } });
        for (op, path, expected) in [
            ("replace", "/list/-1", "/list/2"),
            ("replace", "/list/01", "/list/1"),
            ("replace", "/list/+1", "/list/1"),
            ("replace", "/list/-1/-1", "/list/2/0"),
            ("add", "/list/-1", "/list/3"),
            ("add", "/list/-1/-1", "/list/2/1"),
            ("add", "/list/-", "/list/-"),
            ("remove", "/list/-4", "/list/-1"),
            ("remove", "/map/-1", "/map/-1"),
            ("test", "ignored/map", "/map"),
            ("test", "", ""),
        ] {
            let operation = normalize_operation(&object, json!({ "op": op, "path": path }));
            assert_eq!(operation["path"], expected, "{op} {path}");
        }
    }

    #[test]
    fn path_of_a_million_steps_takes_linear_time() {
        let path = "/".repeat(1 << 20);
        let operation = normalize_operation(&json!({}), json!({ "op": "remove", "path": path }));
        assert!(operation["path"] == *path, "the path is unchanged");
    }
}
