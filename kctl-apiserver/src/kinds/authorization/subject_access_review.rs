//! `SubjectAccessReview` of `authorization.k8s.io`: returns whether a user may perform an action.
//!
//! Webhooks and aggregated servers create one to delegate authorization. The user or one of the
//! groups is required.
//!
//! It is answered and never stored. `validation.rs` has its rules.
//!
//! Upstream: `pkg/registry/authorization/subjectaccessreview/rest.go` and
//! `pkg/apis/authorization/validation/validation.go`.

use crate::registry::kind::{Kind, Quota, Requests, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "subjectaccessreviews",
    kind: "SubjectAccessReview",
    requests: Requests { is_exempt_from_policies: true, review: Some(Review::SubjectAccess), ..Requests::DEFAULT },
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
