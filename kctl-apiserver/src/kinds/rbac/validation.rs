//! Validation of roles and their bindings.
//!
//! Upstream: `pkg/apis/rbac/validation/validation.go`. The role of a binding need not exist.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    metadata::Scope,
    names::NameRule,
    validation::entries,
};

/// API group of roles, and of subjects that are users or groups.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Validates the rules of a role (`ValidatePolicyRule`).
///
/// A rule is for resources or for paths outside of the API. A rule for resources has at least one group and one
/// resource. Only a `ClusterRole` (`namespaced: false`) may have paths.
pub(crate) fn role(object: &Value, scope: Scope, errors: &mut Errors) {
    for (index, rule) in entries(&object["rules"]) {
        let path = format!("rules[{index}]");
        let is_empty = |list: &str| entries(&rule[list]).next().is_none();
        if !is_empty("nonResourceURLs") {
            let names = ["apiGroups", "resources", "resourceNames"];
            let urls = &rule["nonResourceURLs"];
            if scope == Scope::Namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.invalid(&format!("{path}.nonResourceURLs"), urls, detail);
            }
            if names.iter().any(|name| !is_empty(name)) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.invalid(&format!("{path}.nonResourceURLs"), urls, detail);
            }
            continue;
        }
        if is_empty("apiGroups") {
            errors.required(&format!("{path}.apiGroups"), "resource rules must supply at least one api group");
        }
        if is_empty("resources") {
            errors.required(&format!("{path}.resources"), "resource rules must supply at least one resource");
        }
    }
}

/// Validates a `ClusterRole`: its rules, and the selectors of its `aggregationRule`.
///
/// A controller sets the rules of such a role to those of all selected roles. At least one selector
/// is required, and an invalid one gets a second error without details, as in kube-apiserver.
pub(crate) fn cluster_role(object: &Value, errors: &mut Errors) {
    role(object, Scope::Cluster, errors);
    if object["aggregationRule"].is_null() {
        return;
    }
    let (path, selectors) =
        ("aggregationRule.clusterRoleSelectors", &object["aggregationRule"]["clusterRoleSelectors"]);
    if entries(selectors).next().is_none() {
        errors.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (index, selector) in entries(selectors) {
        let (path, before) = (format!("{path}[{index}]"), errors.len());
        crate::validation::selector::selector(selector, &path, errors);
        if errors.len() > before {
            errors.invalid(&path, &Value::Null, "invalid label selector.");
        }
    }
}

/// Validates a binding (`ValidateRoleBinding`): the reference to the role, and the subjects.
///
/// A `RoleBinding` may also refer to a `Role`. A binding without subjects is valid. A tag of the API
/// makes `roleRef` immutable; the name is required after a change as well.
pub(crate) fn binding(object: &Value, scope: Scope, errors: &mut Errors) {
    let role = &object["roleRef"];
    errors.always_one_of("roleRef.apiGroup", &role["apiGroup"], &[GROUP]);
    let kinds: &[&str] = if scope == Scope::Namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    errors.always_one_of("roleRef.kind", &role["kind"], kinds);
    errors.required_name("roleRef.name", &role["name"], NameRule::PathSegment);
    for (index, subject) in entries(&object["subjects"]) {
        one_subject(subject, &format!("subjects[{index}]"), scope, errors);
    }
}

/// Validates a subject (`ValidateRoleBindingSubject`). An absent name is reported by the schema's
/// own rules.
///
/// In a `RoleBinding`, a service account may be without a namespace; a `ClusterRoleBinding`
/// requires one.
fn one_subject(subject: &Value, path: &str, scope: Scope, errors: &mut Errors) {
    let group_path = format!("{path}.apiGroup");
    errors.always_one_of(&format!("{path}.kind"), &subject["kind"], &["ServiceAccount", "User", "Group"]);
    match text(&subject["kind"]) {
        "ServiceAccount" => {
            if !text(&subject["name"]).is_empty() {
                errors.name(&format!("{path}.name"), &subject["name"], NameRule::Subdomain);
            }
            errors.always_one_of(&group_path, &subject["apiGroup"], &[""]);
            if scope == Scope::Cluster && text(&subject["namespace"]).is_empty() {
                errors.required(&format!("{path}.namespace"), "");
            }
        }
        "User" | "Group" => errors.always_one_of(&group_path, &subject["apiGroup"], &[GROUP]),
        _ => {}
    }
}
