//! `SelfSubjectReview` of `authentication.k8s.io`: returns the user of the request itself.
//! `kubectl auth whoami` creates one. The response has the user in `status.userInfo`, after impersonation. The kind is
//! a review: it is answered and never stored. It can only be created, it does not count in quotas, and admission
//! policies do not see it. Upstream: `pkg/registry/authentication/selfsubjectreview/rest.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind =
    Kind::review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", Review::SelfSubject);
