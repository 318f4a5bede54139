//! Kinds of `authentication.k8s.io`.
//!
//! Both kinds are reviews: a `create` returns an answer, and nothing is stored. The folder `verbs`
//! has the answers.

pub(crate) mod self_subject_review;
pub(crate) mod token_review;
