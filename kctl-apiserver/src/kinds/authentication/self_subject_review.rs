//! `SelfSubjectReview` of `authentication.k8s.io`: returns the user of the request itself.

use crate::registry::kind::{Kind, Quota, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authentication.k8s.io",
    resource: "selfsubjectreviews",
    kind: "SelfSubjectReview",
    review: Some(Review::SelfSubject),
    is_exempt_from_policies: true,
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
