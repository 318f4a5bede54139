//! Kinds of `rbac.authorization.k8s.io`.

pub(crate) mod cluster_role;
pub(crate) mod cluster_role_binding;
mod defaults;
pub(crate) mod role;
pub(crate) mod role_binding;
mod table;
pub(crate) mod validation;
