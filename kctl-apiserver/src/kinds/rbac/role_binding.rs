//! `RoleBinding` of `rbac.authorization.k8s.io`: grants a role to subjects in one namespace.
//!
//! - The role is a `Role` of the same namespace or a `ClusterRole`, whose rules then apply in this
//!   namespace.
//! - `roleRef` is immutable: to bind another role, delete the binding and create another.
//! - `kubectl get -o wide` adds users, groups and service accounts.
//!
//! Upstream: `pkg/registry/rbac/rolebinding/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{metadata::Scope, names::NameRule, registry::kind::Kind};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    kind: "RoleBinding",
    names: NameRule::WholePathSegment,
    creates_on_update: true,
    default: super::defaults::binding,
    validate: |object, errors| super::validation::binding(object, Scope::Namespaced, errors),
    printer: Some(super::table::binding),
    ..Kind::DEFAULT
};
