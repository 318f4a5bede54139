//! `ClusterRoleBinding` of `rbac.authorization.k8s.io`: grants a `ClusterRole` in the whole cluster.
//!
//! - `roleRef` is immutable: to bind another role, delete the binding and create another.
//! - Subjects that are service accounts need a namespace.
//! - `kubectl get -o wide` adds users, groups and service accounts.
//!
//! Upstream: `pkg/registry/rbac/clusterrolebinding/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{metadata::Scope, names::NameRule, registry::kind::Kind};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterrolebindings",
    kind: "ClusterRoleBinding",
    names: NameRule::WholePathSegment,
    creates_on_update: true,
    default: super::defaults::binding,
    validate: |object, errors| super::validation::binding(object, Scope::Cluster, errors),
    printer: Some(super::table::binding),
    ..Kind::DEFAULT
};
