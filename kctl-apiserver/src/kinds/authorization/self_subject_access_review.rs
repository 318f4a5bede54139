//! `SelfSubjectAccessReview` of `authorization.k8s.io`: returns whether the caller may perform an action.
//!
//! `kubectl auth can-i` creates one. The user is that of the request, so the spec has neither user
//! nor groups.
//!
//! It is answered and never stored. `validation.rs` has its rules.
//!
//! Upstream: `pkg/registry/authorization/selfsubjectaccessreview/rest.go` and
//! `pkg/apis/authorization/validation/validation.go`.

use crate::registry::kind::{Kind, Quota, Requests, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "selfsubjectaccessreviews",
    kind: "SelfSubjectAccessReview",
    requests: Requests { is_exempt_from_policies: true, review: Some(Review::SelfSubjectAccess), ..Requests::DEFAULT },
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
