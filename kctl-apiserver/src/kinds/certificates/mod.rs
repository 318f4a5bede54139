//! Kinds of `certificates.k8s.io`.
//!
//! The only kind is `CertificateSigningRequest`. Signers and approvers are clients; none is part of
//! this server.

pub(crate) mod certificate_signing_request;
