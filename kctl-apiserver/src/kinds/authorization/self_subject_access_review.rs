//! `SelfSubjectAccessReview` of `authorization.k8s.io`: returns whether the caller may perform an action.
//!
//! `kubectl auth can-i` creates one. The user is the caller, so the spec has neither user nor groups.
//!
//! Upstream: `pkg/registry/authorization/selfsubjectaccessreview/rest.go` and
//! `pkg/apis/authorization/validation/validation.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind = Kind::review(
    "authorization.k8s.io",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    Review::SelfSubjectAccess,
);
