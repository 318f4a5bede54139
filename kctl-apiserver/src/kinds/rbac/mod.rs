//! Kinds of `rbac.authorization.k8s.io`.
//!
//! The authorizer evaluates these objects; the files here validate and print them. Roles and bindings of the cluster
//! and of namespaces share their rules.

pub(crate) mod cluster_role;
pub(crate) mod cluster_role_binding;
mod defaults;
pub(crate) mod role;
pub(crate) mod role_binding;
mod table;
pub(crate) mod validation;

use crate::{
    names::NameRule,
    registry::kind::{Defaults, Kind, ManagedFields, Metadata, Strategy, Undecoded},
};

/// The common part of all kinds of the group.
const RBAC: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    metadata: Metadata { names: NameRule::WholePathSegment, ..Metadata::DEFAULT },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    ..Kind::DEFAULT
};

/// The common part of roles.
const ROLE: Kind = Kind {
    defaults: Defaults { later: &[("/rules", Undecoded::AsDefault)], ..Defaults::DEFAULT },
    managed_fields: ManagedFields { filled_in: &["/rules"], ..ManagedFields::DEFAULT },
    ..RBAC
};

/// The common part of bindings.
const BINDING: Kind =
    Kind { defaults: Defaults { set: defaults::binding, ..Defaults::DEFAULT }, table: table::BINDING, ..RBAC };
