//! `LocalSubjectAccessReview` of `authorization.k8s.io`.

use crate::registry::kind::{Kind, Quota, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authorization.k8s.io",
    resource: "localsubjectaccessreviews",
    kind: "LocalSubjectAccessReview",
    review: Some(Review::LocalSubjectAccess),
    is_exempt_from_policies: true,
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
