//! Kinds of `networking.k8s.io`.
//!
//! The embedded server has no network. It allocates cluster IPs for Services; all other objects are for their
//! controllers.

pub(crate) mod ingress;
pub(crate) mod ingress_class;
pub(crate) mod ip_address;
pub(crate) mod network_policy;
pub(crate) mod service_cidr;
