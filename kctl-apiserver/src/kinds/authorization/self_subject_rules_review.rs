//! `SelfSubjectRulesReview` of `authorization.k8s.io`: returns the permissions of the caller in a namespace.
//!
//! `kubectl auth can-i --list` creates one. The response is the union of the roles that apply in `spec.namespace`.
//!
//! Upstream: `pkg/registry/authorization/selfsubjectrulesreview/rest.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind =
    Kind::review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", Review::SelfSubjectRules);
