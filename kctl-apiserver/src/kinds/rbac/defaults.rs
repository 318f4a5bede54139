//! Defaults of `RoleBinding` and `ClusterRoleBinding` (`pkg/apis/rbac/v1/defaults.go`).

use serde_json::Value;

use crate::defaulting::{fill, is_text, items, part};

/// Fills in the API groups of role and subjects, so that most manifests need not have them. A service account keeps the
/// empty core group, which Go does not serialize.
pub(crate) fn binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    fill(part(object, "roleRef"), "apiGroup", GROUP);
    for subject in items(object, "subjects") {
        if is_text(subject, "kind", "User") || is_text(subject, "kind", "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    }
}
