//! `SelfSubjectRulesReview` of `authorization.k8s.io`: returns the permissions of the caller in a namespace.

use crate::registry::kind::{Kind, Quota, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "selfsubjectrulesreviews",
    kind: "SelfSubjectRulesReview",
    review: Some(Review::SelfSubjectRules),
    is_exempt_from_policies: true,
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
