//! Kinds of `authentication.k8s.io`.

pub(crate) mod self_subject_review;
pub(crate) mod token_review;
