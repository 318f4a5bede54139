//! `RoleBinding` of `rbac.authorization.k8s.io`: grants a role to subjects in one namespace.

use crate::{names::NameRule, registry::kind::Kind};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    kind: "RoleBinding",
    names: NameRule::WholePathSegment,
    creates_on_update: true,
    default: super::defaults::binding,
    validate: |object, errors| super::validation::binding(object, true, errors),
    validate_update: super::validation::role_stays,
    printer: Some(super::table::binding),
    ..Kind::DEFAULT
};
