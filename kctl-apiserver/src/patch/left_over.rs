//! What a strategic merge patch still says when it has been merged: refusals of the real server show that.
//! Upstream: `mergePatchIntoOriginal` and `applyRetainKeysDirective` of
//! `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go` take out of the patch what they have done.

use serde_json::Value;

use super::strategic::{RETAIN_KEYS, SET_ORDER};

/// Drops lists that are merged by an order, and directives, from a patch and the objects in it, where the original has such objects:
/// what is new is taken as it is.
pub(crate) fn left_over(mut patch: Value, original: &Value) -> Value {
    drop_done(&mut patch, original);
    patch
}

fn drop_done(value: &mut Value, original: &Value) {
    let (Value::Object(fields), Value::Object(known)) = (value, original) else { return };
    let ordered: Vec<String> =
        fields.keys().filter_map(|name| name.strip_prefix(SET_ORDER)).map(str::to_owned).collect();
    fields.retain(|name, _| name != RETAIN_KEYS && !name.starts_with(SET_ORDER) && !ordered.contains(name));
    for (name, value) in fields {
        if let Some(original) = known.get(name) {
            drop_done(value, original);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_an_order_is_merged_first_and_shown_no_more() {
        let patch = json!({
            "metadata": { "lables": { "a": "b" } },
            "spec": {
                "$setElementOrder/containers": [{ "name": "c" }],
                "$retainKeys": ["containers"],
                "containers": [{ "name": "c", "imagePullpolicy": "x" }],
                "volumes": [{ "name": "v" }],
                "nodeSelector": { "$retainKeys": ["a"] },
            },
        });
        let spec = json!({ "volumes": [{ "name": "v" }], "nodeSelector": { "$retainKeys": ["a"] } });
        let expected = json!({ "metadata": { "lables": { "a": "b" } }, "spec": spec });
        assert_eq!(left_over(patch, &json!({ "metadata": {}, "spec": { "containers": [] } })), expected);
    }
}
