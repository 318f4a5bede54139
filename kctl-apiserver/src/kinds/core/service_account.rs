//! `ServiceAccount` of the core group: the identity of the processes in Pods.
//!
//! The server keeps only the names of its secrets, and warns about a deprecated annotation. The subresource `token`
//! returns a `TokenRequest`, not an account. `kubectl create token` uses it.
//!
//! Upstream: `pkg/registry/core/serviceaccount/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::items,
    registry::kind::{Cell, Defaults, DeleteStrategy, Kind, Requests, Subresource, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    resource: "serviceaccounts",
    kind: "ServiceAccount",
    requests: Requests { created_subresources: &[Subresource::Token], ..Requests::DEFAULT },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation { warn, ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[Cell::Name, Cell::Age]),
    ..Kind::DEFAULT
};

/// Warns when the annotation `enforce-mountable-secrets` is added. An account that already has it gets no warning.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let annotation = "kubernetes.io/enforce-mountable-secrets";
    let has = |account: &Value| account["metadata"]["annotations"].get(annotation).is_some();
    if has(object) && !old.is_some_and(has) {
        let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        warnings.push(format!("metadata.annotations[{annotation}]: {why}"));
    }
}

/// Keeps only the name of each of `secrets`, which refer to Secrets of the same namespace
/// (`cleanSecretReferences` in `pkg/registry/core/serviceaccount/strategy.go`).
fn default(object: &mut Value) {
    for secret in items(object, "secrets").filter_map(Value::as_object_mut) {
        secret.retain(|field, _| field == "name");
    }
}
