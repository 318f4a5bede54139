//! Kinds of `certificates.k8s.io`.
//!
//! Signers and approvers are clients, and not part of this server.

pub(crate) mod certificate_signing_request;
pub(crate) mod cluster_trust_bundle;
pub(crate) mod pod_certificate_request;
