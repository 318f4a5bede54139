//! `ClusterRoleBinding` of `rbac.authorization.k8s.io`: grants a `ClusterRole` in the whole cluster.
//! `roleRef` is immutable: to bind another role, delete the binding and create another.
//! Upstream: `pkg/registry/rbac/clusterrolebinding/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    metadata::Scope,
    names::NameRule,
    registry::kind::{Defaults, Kind, Metadata, Strategy, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterrolebindings",
    kind: "ClusterRoleBinding",
    metadata: Metadata { names: NameRule::WholePathSegment, ..Metadata::DEFAULT },
    defaults: Defaults { set: super::defaults::binding, ..Defaults::DEFAULT },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    validation: Validation {
        validate: |object, errors| super::validation::binding(object, Scope::Cluster, errors),
        ..Validation::DEFAULT
    },
    table: super::table::BINDING,
    ..Kind::DEFAULT
};
