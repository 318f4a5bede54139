//! `ClusterRole` of `rbac.authorization.k8s.io`: permissions for the whole cluster, or to bind in namespaces.

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
