//! `RoleBinding` of `rbac.authorization.k8s.io`: grants a role to subjects in one namespace.
//!
//! - The role is a `Role` of the same namespace or a `ClusterRole`, whose rules then apply in this namespace.
//! - `roleRef` is immutable: to bind another role, delete the binding and create another.
//!
//! Upstream: `pkg/registry/rbac/rolebinding/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    metadata::Scope,
    registry::kind::{Grants, Kind, Validation},
};

pub(crate) static KIND: Kind = Kind {
    resource: "rolebindings",
    kind: "RoleBinding",
    validation: Validation {
        grants: Some(Grants::ReferencedRole),
        validate: |object, errors| super::validation::validate_binding(object, Scope::Namespaced, errors),
        ..Validation::DEFAULT
    },
    ..super::BINDING
};
