//! Which objects a quota is about, by its scopes.

use serde_json::Value;

use super::usage::Counter;

/// Whether all scopes of a quota are about an object. What is neither a pod nor a claim is in no scope.
pub(super) fn fit(quota: &Value, counter: &Counter, object: &Value) -> bool {
    let items = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
    let plain = items(&quota["spec"]["scopes"]);
    let selected = items(&quota["spec"]["scopeSelector"]["matchExpressions"]);
    let fits = |scope: &Value, operator: &str, values: &Value| {
        counter.is_in_scope(object, scope.as_str().unwrap_or_default(), operator, values)
    };
    plain.iter().all(|scope| fits(scope, "Exists", &Value::Null))
        && selected
            .iter()
            .all(|one| fits(&one["scopeName"], one["operator"].as_str().unwrap_or_default(), &one["values"]))
}
