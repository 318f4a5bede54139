//! Validation of roles and their bindings.
//!
//! Upstream: `pkg/apis/rbac/validation/validation.go`. The role of a binding need not exist.

use serde_json::Value;

use crate::{field::Field, field_errors::Errors, metadata::Scope, names::NameRule, validation::selector};

/// API group of roles, and of subjects that are users or groups.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Validates the rules of a role (`ValidatePolicyRule`). A rule is for resources or for paths outside of the API; only
/// a `ClusterRole` may have paths.
pub(crate) fn validate_role(object: &Value, scope: Scope, errors: &mut Errors) {
    for rule in Field::new(&object["rules"], "rules", errors).items() {
        let urls = rule.at("nonResourceURLs");
        if urls.is_empty() {
            rule.require_children(&["apiGroups", "resources"]);
        } else {
            let has_more = ["apiGroups", "resources", "resourceNames"].iter().any(|list| !rule.at(list).is_empty());
            let detail = "is only allowed in a ClusterRole, in a rule without apiGroups, resources and resourceNames";
            urls.invalid_if(scope == Scope::Namespaced || has_more, detail);
        }
    }
}

/// Validates a `ClusterRole`. A controller sets the rules of a role with an `aggregationRule` to the rules of all
/// selected roles. An invalid selector gets a second error without details, as in kube-apiserver.
pub(crate) fn cluster_role(object: &Value, errors: &mut Errors) {
    validate_role(object, Scope::Cluster, errors);
    let aggregation = Field::new(&object["aggregationRule"], "aggregationRule", errors);
    let selectors = aggregation.at("clusterRoleSelectors");
    selectors.required_if(!aggregation.is_null() && selectors.is_empty());
    for selector in selectors.items() {
        let is_valid = selector.passes(selector::validate_selector);
        selector.invalid_if(!is_valid, "invalid label selector");
    }
}

/// Validates a binding (`ValidateRoleBinding`). A binding without subjects is valid. A tag of the API makes `roleRef`
/// immutable; the name is required after a change as well.
pub(crate) fn validate_binding(object: &Value, scope: Scope, errors: &mut Errors) {
    let binding = Field::new(object, "", errors);
    let role = binding.at("roleRef");
    role.at("apiGroup").always_one_of(&[GROUP]);
    let kinds: &[&str] = if scope == Scope::Namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    role.at("kind").always_one_of(kinds);
    role.at("name").required_name(NameRule::PathSegment);
    binding.at("subjects").items().for_each(|subject| validate_subject(&subject, scope));
}

/// Validates a subject (`ValidateRoleBindingSubject`). A tag of the API requires the name.
fn validate_subject(subject: &Field<'_>, scope: Scope) {
    let (kind, group, namespace) = (subject.at("kind"), subject.at("apiGroup"), subject.at("namespace"));
    kind.always_one_of(&["ServiceAccount", "User", "Group"]);
    match kind.text() {
        "ServiceAccount" => {
            subject.at("name").name_if_set(NameRule::Subdomain);
            group.always_one_of(&[""]);
            namespace.required_if(scope == Scope::Cluster && namespace.is_empty());
        }
        "User" | "Group" => group.always_one_of(&[GROUP]),
        _ => {}
    }
}
