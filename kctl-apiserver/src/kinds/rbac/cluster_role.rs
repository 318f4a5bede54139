//! `ClusterRole` of `rbac.authorization.k8s.io`: permissions for the whole cluster, or for the namespaces in which it
//! is bound.
//!
//! - Rules of a role with an `aggregationRule` are overwritten by a controller.
//! - A write may not grant more than the writer has; `write/escalation` checks it, not this file.
//!
//! Upstream: `pkg/registry/rbac/clusterrole/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::registry::kind::{Grants, Kind, Validation};

pub(crate) static KIND: Kind = Kind {
    resource: "clusterroles",
    kind: "ClusterRole",
    validation: Validation {
        grants: Some(Grants::Rules),
        validate: super::validation::cluster_role,
        ..Validation::DEFAULT
    },
    ..super::ROLE
};
