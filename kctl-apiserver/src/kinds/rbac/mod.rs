//! Kinds of `rbac.authorization.k8s.io`.
//! The authorizer evaluates these objects; the files here validate and print them. Roles and bindings of the cluster
//! and of namespaces share their rules.

pub(crate) mod cluster_role;
pub(crate) mod cluster_role_binding;
mod defaults;
pub(crate) mod role;
pub(crate) mod role_binding;
mod table;
pub(crate) mod validation;
