//! Claims that reach devices as their administrator do are for marked namespaces alone: reads what is written and the labels
//! of its namespace, hands on what is wrong.
//!
//! Behaviour: `AuthorizedForAdmin` and `AuthorizedForAdminStatus` in `pkg/registry/resource/resourceclaim/strategy.go`, asked of
//! kube-apiserver 1.36.

use serde_json::Value;

use crate::{
    kinds::{
        core::namespace,
        resource::{resource_claim, resource_claim_template},
    },
    request::RequestInfo,
    state::State,
    status::FieldError,
};

const LABEL: &str = "resource.kubernetes.io/admin-access";
const DETAIL: &str = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the \
                      containing namespace";

/// What is wrong with a new claim or template, or with what a claim is given. Only the first such device is named.
pub(super) fn errors(state: &State, info: &RequestInfo, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let is_claim = info.resource.is(&resource_claim::KIND);
    let is_template = info.resource.is(&resource_claim_template::KIND);
    let none = Value::Null;
    // The path of what a template asks for is told as that of a claim.
    let (list, at, field) = match old {
        None if is_claim => (&new["spec"]["devices"]["requests"], REQUESTS, "/exactly"),
        None if is_template => (&new["spec"]["spec"]["devices"]["requests"], REQUESTS, "/exactly"),
        Some(old)
            if is_claim
                && info.subresource == "status"
                && !has_admin(&old["status"]["allocation"]["devices"]["results"]) =>
        {
            (&new["status"]["allocation"]["devices"]["results"], RESULTS, "")
        }
        _ => (&none, "", ""),
    };
    let is_admin = |one: &Value| one.pointer(&format!("{field}/adminAccess")) == Some(&Value::Bool(true));
    let first = list.as_array().and_then(|list| list.iter().position(is_admin));
    match first {
        Some(index) if !is_marked(state, &info.namespace) => {
            vec![FieldError::forbidden(&format!("{at}[{index}].adminAccess"), DETAIL)]
        }
        _ => Vec::new(),
    }
}

fn has_admin(results: &Value) -> bool {
    results.as_array().is_some_and(|results| results.iter().any(|result| result["adminAccess"] == true))
}

const REQUESTS: &str = "spec.devices.requests";
const RESULTS: &str = "status.allocation.devices.results";

fn is_marked(state: &State, namespace: &str) -> bool {
    let namespace = state.get(&namespace::KIND.group_resource(), &(String::new(), namespace.to_owned()));
    namespace.is_some_and(|namespace| namespace["metadata"]["labels"][LABEL] == "true")
}
