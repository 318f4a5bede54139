//! Kinds of `networking.k8s.io`.
//!
//! The embedded server has no network. It allocates cluster IPs for Services; all other objects are for their
//! controllers.

pub(crate) mod ingress;
pub(crate) mod ingress_class;
pub(crate) mod ip_address;
pub(crate) mod network_policy;
pub(crate) mod service_cidr;

/// Returns `kind.group`, or only the kind for the core group, as cells about references show it.
pub(crate) fn with_group(kind: &str, group: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}
