//! Cells of admission policies and their bindings.
//!
//! Upstream: `printValidatingAdmissionPolicy` and its neighbours in `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use crate::{
    registry::kind::{Cell, TableColumns},
    table::{
        fields::{text, text_or, value_at},
        labels::{UNSET, go_notation},
    },
};

/// The columns of bindings of both kinds.
pub(super) const BINDING: TableColumns = TableColumns::cells(&[
    Cell::Name,
    Cell::Text("/spec/policyName"),
    Cell::Computed(|binding, _| parameter(binding).into()),
    Cell::Age,
]);

/// Returns the kind of a policy's parameters as `apiVersion/kind`, such as `v1/ConfigMap`, or `<unset>`.
pub(crate) fn parameter_kind(object: &Value) -> String {
    let kind = value_at(object, "/spec/paramKind");
    if kind.is_object() { format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")) } else { UNSET.to_owned() }
}

/// Returns the parameters of a binding. With the namespace `*` they are in the namespace of each request.
fn parameter(object: &Value) -> String {
    let parameter = value_at(object, "/spec/paramRef");
    if !parameter.is_object() {
        UNSET.to_owned()
    } else if text(parameter, "/name").is_empty() {
        go_notation(value_at(parameter, "/selector"))
    } else {
        format!("{}/{}", text_or(parameter, "/namespace", "*"), text(parameter, "/name"))
    }
}
