//! `LocalSubjectAccessReview` of `authorization.k8s.io`.
//!
//! It reports whether a user may perform an action in one namespace. The namespace in the path must equal the one in
//! `spec.resourceAttributes`, so that the permission to create these reviews can be granted per namespace.
//!
//! Upstream: `pkg/registry/authorization/localsubjectaccessreview/rest.go` and
//! `pkg/apis/authorization/validation/validation.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind = Kind::review(
    "authorization.k8s.io",
    "localsubjectaccessreviews",
    "LocalSubjectAccessReview",
    Review::LocalSubjectAccess,
);
