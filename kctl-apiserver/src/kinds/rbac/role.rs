//! `Role` of `rbac.authorization.k8s.io`: permissions in one namespace.
//!
//! Rules for paths outside of the API (`nonResourceURLs`) are invalid: they are not in a namespace.
//!
//! Upstream: `pkg/registry/rbac/role/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    metadata::Scope,
    registry::kind::{Defaults, Grants, Kind, ManagedFields, Undecoded, Validation},
};

pub(crate) static KIND: Kind = Kind {
    resource: "roles",
    kind: "Role",
    defaults: Defaults { later: &[("/rules", Undecoded::AsDefault)], ..Defaults::DEFAULT },
    validation: Validation {
        grants: Some(Grants::Rules),
        validate: |object, errors| super::validation::validate_role(object, Scope::Namespaced, errors),
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields { filled_in: &["/rules"], ..ManagedFields::DEFAULT },
    ..super::RBAC
};
