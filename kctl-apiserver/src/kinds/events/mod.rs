//! Kinds of `events.k8s.io`.
//!
//! The only kind is `Event`. The core group serves the same kind of object with older names of the fields, so that both
//! share their printer and parts of their validation.

pub(crate) mod conversion;
pub(crate) mod event;
pub(crate) mod validation;
