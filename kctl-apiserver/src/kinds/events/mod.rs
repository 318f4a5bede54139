//! Kinds of `events.k8s.io`.

pub(crate) mod event;
pub(crate) mod validation;
