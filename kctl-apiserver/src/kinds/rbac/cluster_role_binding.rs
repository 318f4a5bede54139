//! `ClusterRoleBinding` of `rbac.authorization.k8s.io`: grants a `ClusterRole` in the whole cluster.
//!
//! `roleRef` is immutable: to bind another role, delete the binding and create another.
//!
//! Upstream: `pkg/registry/rbac/clusterrolebinding/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    metadata::Scope,
    registry::kind::{Grants, Kind, Validation},
};

pub(crate) static KIND: Kind = Kind {
    resource: "clusterrolebindings",
    kind: "ClusterRoleBinding",
    validation: Validation {
        grants: Some(Grants::ReferencedRole),
        validate: |object, errors| super::validation::validate_binding(object, Scope::Cluster, errors),
        ..Validation::DEFAULT
    },
    ..super::BINDING
};
