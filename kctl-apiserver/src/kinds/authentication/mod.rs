//! Kinds of `authentication.k8s.io`.
//!
//! Both kinds are reviews: a `create` returns a response, and nothing is stored. The module `verbs` has the code.

pub(crate) mod self_subject_review;
pub(crate) mod token_review;
