//! `Role` of `rbac.authorization.k8s.io`: permissions in one namespace.
//!
//! Rules for paths outside of the API (`nonResourceURLs`) are invalid: they are not in a namespace.
//!
//! Upstream: `pkg/registry/rbac/role/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use crate::{
    metadata::Scope,
    registry::kind::{Grants, Kind, Validation},
};

pub(crate) static KIND: Kind = Kind {
    resource: "roles",
    kind: "Role",
    validation: Validation {
        grants: Some(Grants::Rules),
        validate: |object, errors| super::validation::validate_role(object, Scope::Namespaced, errors),
        ..Validation::DEFAULT
    },
    ..super::ROLE
};
