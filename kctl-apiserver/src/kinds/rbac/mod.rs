//! Kinds of `rbac.authorization.k8s.io`.

pub(crate) mod cluster_role;
pub(crate) mod cluster_role_binding;
pub(crate) mod role;
pub(crate) mod role_binding;
mod table;
pub(crate) mod validation;
