//! `ClusterRole` of `rbac.authorization.k8s.io`: permissions for the whole cluster, or for the namespaces in which it
//! is bound.
//!
//! - A name need only be a path segment, as in `system:node`. A `PUT` creates a missing role.
//! - Rules of a role with an `aggregationRule` are overwritten by a controller.
//! - A write may not grant more than the writer has; `write/escalation` checks it, not this file.
//! - `kubectl get` shows name and time of creation.
//!
//! Upstream: `pkg/registry/rbac/clusterrole/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting,
    names::NameRule,
    registry::kind::{Kind, Undecoded},
};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterroles",
    kind: "ClusterRole",
    names: NameRule::WholePathSegment,
    creates_on_update: true,
    default: |object| defaulting::add(object, "rules", Value::Null),
    later_defaults: &[("/rules", Undecoded::AsDefault)],
    filled_in: &["/rules"],
    validate: super::validation::cluster_role,
    ..Kind::DEFAULT
};
