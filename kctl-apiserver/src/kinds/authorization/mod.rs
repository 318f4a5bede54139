//! Kinds of `authorization.k8s.io`.
//!
//! All kinds are reviews: a `create` returns the decision of the authorizer, and nothing is stored.

pub(crate) mod local_subject_access_review;
pub(crate) mod self_subject_access_review;
pub(crate) mod self_subject_rules_review;
pub(crate) mod subject_access_review;
pub(crate) mod validation;
