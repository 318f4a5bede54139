//! `ClusterRoleBinding` of `rbac.authorization.k8s.io`: grants a `ClusterRole` in the whole cluster.

use crate::{names::NameRule, registry::kind::Kind};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterrolebindings",
    kind: "ClusterRoleBinding",
    names: NameRule::WholePathSegment,
    creates_on_update: true,
    default: super::defaults::binding,
    validate: |object, errors| super::validation::binding(object, false, errors),
    validate_update: super::validation::role_stays,
    printer: Some(super::table::binding),
    ..Kind::DEFAULT
};
