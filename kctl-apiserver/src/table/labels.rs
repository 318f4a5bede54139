//! Prints labels and label selectors.
//!
//! Upstream: `FormatLabels` and `FormatLabelSelector` of `apimachinery`.

use serde_json::Value;

use super::fields::{list, text, texts, value_at};

/// A cell for a field that is not set, where kubectl does not print [`NONE`].
pub(crate) const UNSET: &str = "<unset>";
/// The cell for an empty selector or an absent value.
pub(crate) const NONE: &str = "<none>";

/// Returns a label selector in query syntax, or [`NONE`].
pub(crate) fn selector(value: &Value) -> String {
    let joined = query(value);
    if joined.is_empty() { NONE.to_owned() } else { joined }
}

/// Returns labels or a label selector in query syntax, as in `?labelSelector=`; empty if it selects everything. A map
/// of strings counts as labels, such as the selector of a `ReplicationController`. Requirements are sorted by key,
/// and so are the values of each, as kube-apiserver parses them (`metav1.LabelSelectorAsSelector`).
pub(crate) fn query(value: &Value) -> String {
    let plain = value.as_object().filter(|map| map.values().all(Value::is_string));
    let labels = value_at(value, "/matchLabels").as_object().or(plain).into_iter().flatten();
    let equal = labels.map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())));
    let expressions = list(value, "/matchExpressions").iter().map(|expression| {
        let key = text(expression, "/key");
        (key, requirement(key, expression))
    });
    let mut all: Vec<_> = equal.chain(expressions).collect();
    all.sort_by_key(|(key, _)| *key);
    all.into_iter().map(|(_, requirement)| requirement).collect::<Vec<_>>().join(",")
}

/// Returns a label selector as Go prints the struct, which kube-apiserver shows for parameters that are selected by
/// labels.
pub(crate) fn go_notation(value: &Value) -> String {
    let labels = value_at(value, "/matchLabels").as_object().into_iter().flatten();
    let labels: Vec<_> = labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default())).collect();
    let expressions: Vec<_> = list(value, "/matchExpressions")
        .iter()
        .map(|expression| {
            let values = texts(expression, "/values").join(" ");
            let (key, operator) = (text(expression, "/key"), text(expression, "/operator"));
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        expressions.concat()
    )
}

/// Returns one of the `matchExpressions` in query syntax, with sorted values. `Exists` is printed as the key.
fn requirement(key: &str, expression: &Value) -> String {
    let mut values = texts(expression, "/values");
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "/operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}
