//! `SubjectAccessReview` of `authorization.k8s.io`: returns whether a user may do something.

use crate::registry::kind::{Kind, Quota, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "subjectaccessreviews",
    kind: "SubjectAccessReview",
    review: Some(Review::SubjectAccess),
    is_exempt_from_policies: true,
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
