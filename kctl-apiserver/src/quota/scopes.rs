//! Scopes of `ResourceQuotas`: decides which objects a quota applies to.

use serde_json::Value;

use super::usage::Counter;

/// Returns `true` if an object is in all scopes of a quota. Only Pods and `PersistentVolumeClaims` can be in a scope.
///
/// A quota without scopes applies to all objects. `scopes` are the short form of the operator
/// `Exists`.
pub(super) fn fit(quota: &Value, counter: &Counter, object: &Value) -> bool {
    let items = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
    let plain = items(&quota["spec"]["scopes"]);
    let selected = items(&quota["spec"]["scopeSelector"]["matchExpressions"]);
    let fits = |scope: &Value, operator: &str, values: &Value| {
        counter.is_in_scope(object, scope.as_str().unwrap_or_default(), operator, values)
    };
    plain.iter().all(|scope| fits(scope, "Exists", &Value::Null))
        && selected.iter().all(|requirement| {
            fits(
                &requirement["scopeName"],
                requirement["operator"].as_str().unwrap_or_default(),
                &requirement["values"],
            )
        })
}
