//! `SubjectAccessReview` of `authorization.k8s.io`: returns whether a user may perform an action.
//!
//! Webhooks and aggregated servers create one to delegate authorization. The user or one of the groups is required.
//!
//! Upstream: `pkg/registry/authorization/subjectaccessreview/rest.go` and
//! `pkg/apis/authorization/validation/validation.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind =
    Kind::review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", Review::SubjectAccess);
