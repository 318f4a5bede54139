//! `SelfSubjectRulesReview` of `authorization.k8s.io`: returns the permissions of the caller in a namespace.
//!
//! `kubectl auth can-i --list` creates one. The response is the union of the roles that apply in
//! `spec.namespace`.
//!
//! It is answered and never stored. It does not count in quotas, and admission policies do not see
//! it.
//!
//! Upstream: `pkg/registry/authorization/selfsubjectrulesreview/rest.go`.

use crate::registry::kind::{Kind, Quota, Requests, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "selfsubjectrulesreviews",
    kind: "SelfSubjectRulesReview",
    requests: Requests { is_exempt_from_policies: true, review: Some(Review::SelfSubjectRules), ..Requests::DEFAULT },
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
