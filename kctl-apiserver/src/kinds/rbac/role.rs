//! `Role` of `rbac.authorization.k8s.io`: permissions in one namespace.
//! Rules for paths outside of the API (`nonResourceURLs`) are invalid: they are not in a namespace.
//! Upstream: `pkg/registry/rbac/role/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    metadata::Scope,
    names::NameRule,
    registry::kind::{Defaults, Kind, ManagedFields, Metadata, Strategy, Undecoded, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "roles",
    kind: "Role",
    metadata: Metadata { names: NameRule::WholePathSegment, ..Metadata::DEFAULT },
    defaults: Defaults { later: &[("/rules", Undecoded::AsDefault)], ..Defaults::DEFAULT },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    validation: Validation {
        validate: |object, errors| super::validation::role(object, Scope::Namespaced, errors),
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields { filled_in: &["/rules"], ..ManagedFields::DEFAULT },
    ..Kind::DEFAULT
};
