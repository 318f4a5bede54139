//! `Binding` of the core group.
//!
//! A scheduler creates one to assign a Pod to a node. It is not stored: the server sets `spec.nodeName` of the Pod. The
//! same object may be sent to `pods/<name>/binding`.
//!
//! Upstream: `pkg/registry/core/pod/storage/storage.go` and `pkg/apis/core/validation/validation.go`.

use crate::registry::kind::{Kind, Quota, Requests, Review};

pub(crate) static KIND: Kind = Kind {
    resource: "bindings",
    kind: "Binding",
    requests: Requests { review: Some(Review::Binding), ..Requests::DEFAULT },
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
