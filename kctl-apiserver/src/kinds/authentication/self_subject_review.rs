//! `SelfSubjectReview` of `authentication.k8s.io`: returns the user of the request itself.
//!
//! `kubectl auth whoami` creates one. The response has the user after impersonation.
//!
//! Upstream: `pkg/registry/authentication/selfsubjectreview/rest.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind =
    Kind::review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", Review::SelfSubject);
