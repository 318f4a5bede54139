//! `Role` of `rbac.authorization.k8s.io`: permissions in one namespace.
//!
//! - A name need only be a path segment. A `PUT` creates a missing role.
//! - Rules for paths outside of the API (`nonResourceURLs`) are invalid: they are not in a
//!   namespace.
//! - `kubectl get` shows name and time of creation.
//!
//! Upstream: `pkg/registry/rbac/role/strategy.go` and `pkg/apis/rbac/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting,
    metadata::Scope,
    names::NameRule,
    registry::kind::{Kind, Undecoded},
};

pub(crate) static KIND: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "roles",
    kind: "Role",
    names: NameRule::WholePathSegment,
    creates_on_update: true,
    default: |object| defaulting::add(object, "rules", Value::Null),
    later_defaults: &[("/rules", Undecoded::AsDefault)],
    filled_in: &["/rules"],
    validate: |object, errors| super::validation::role(object, Scope::Namespaced, errors),
    ..Kind::DEFAULT
};
