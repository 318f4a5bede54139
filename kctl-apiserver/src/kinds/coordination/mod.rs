//! Kinds of `coordination.k8s.io`.
//!
//! The only kind is `Lease`. `LeaseCandidate` is served by kube-apiserver only with a feature gate that is off.

pub(crate) mod lease;
