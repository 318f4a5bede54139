//! Allows admin access to devices only for `ResourceClaims` in labelled namespaces: validates the written object
//! against the labels of its namespace.
//!
//! Upstream: `AuthorizedForAdmin` and `AuthorizedForAdminStatus` in `pkg/registry/resource/utils.go`; checked against
//! kube-apiserver.
//!
//! Admin access lets a claim use a device that is in use, for monitoring. It bypasses the isolation between claims, so
//! the owner of a namespace has to allow it with a label.

use serde_json::Value;

use crate::{
    field_errors::{Errors, FieldError},
    kinds::core::namespace,
    request::RequestInfo,
    store::Store,
};

/// The label of a namespace that allows admin access. The value must be `true`.
const LABEL: &str = "resource.kubernetes.io/admin-access";
/// The message of the error.
const DETAIL: &str = "the namespace needs the label `resource.kubernetes.io/admin-access: true`";

/// The path of the requests in an error; the index of the request follows.
const REQUESTS: &str = "spec.devices.requests";
/// The path of the results in an error.
const RESULTS: &str = "status.allocation.devices.results";

/// Validates a new `ResourceClaim` or `ResourceClaimTemplate`, or the allocation of a `ResourceClaim`. Only the first
/// device with admin access is reported. An update of a claim's spec is not checked, since the spec is immutable. An
/// allocation that had admin access before keeps it.
pub(super) fn errors(store: &Store, info: &RequestInfo, old: Option<&Value>, new: &Value) -> Errors {
    let Some(requests) = info.resource.kind.validation.device_requests else { return Errors::default() };
    // Upstream reports the path of a template as the path of a claim.
    let (list, path, field) = match old {
        None => (new.pointer(requests), REQUESTS, "/exactly"),
        Some(old) if info.subresource.is_status() && !has_admin(&old["status"]["allocation"]["devices"]["results"]) => {
            (Some(&new["status"]["allocation"]["devices"]["results"]), RESULTS, "")
        }
        Some(_) => return Errors::default(),
    };
    let is_admin = |request: &Value| request.pointer(&format!("{field}/adminAccess")) == Some(&Value::Bool(true));
    let first = list.and_then(Value::as_array).and_then(|list| list.iter().position(is_admin));
    let unmarked = first.filter(|_| {
        let namespace = store.object(&namespace::KIND, "", &info.namespace);
        namespace.is_none_or(|namespace| namespace["metadata"]["labels"][LABEL] != "true")
    });
    unmarked.map(|index| FieldError::forbidden(&format!("{path}[{index}].adminAccess"), DETAIL)).into_iter().collect()
}

/// Returns `true` if a result of the allocation has admin access. `false` for a claim without an allocation.
fn has_admin(results: &Value) -> bool {
    results.as_array().is_some_and(|results| results.iter().any(|result| result["adminAccess"] == true))
}
