//! `ClusterRole` of `rbac.authorization.k8s.io`: permissions for the whole cluster, or for the namespaces in which it
//! is bound.
//!
//! - Rules of a role with an `aggregationRule` are overwritten by a controller.
//! - A write may not grant more than the writer has; `write/escalation` checks it, not this file.
//!
//! Upstream: `pkg/registry/rbac/clusterrole/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    names::NameRule,
    registry::kind::{Defaults, Kind, ManagedFields, Metadata, Strategy, Undecoded, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterroles",
    kind: "ClusterRole",
    metadata: Metadata { names: NameRule::WholePathSegment, ..Metadata::DEFAULT },
    defaults: Defaults { later: &[("/rules", Undecoded::AsDefault)], ..Defaults::DEFAULT },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    validation: Validation { validate: super::validation::cluster_role, ..Validation::DEFAULT },
    managed_fields: ManagedFields { filled_in: &["/rules"], ..ManagedFields::DEFAULT },
    ..Kind::DEFAULT
};
