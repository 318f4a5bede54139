//! `TokenReview` of `authentication.k8s.io`: returns the user of a token.

use crate::registry::kind::{Kind, Quota, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authentication.k8s.io",
    resource: "tokenreviews",
    kind: "TokenReview",
    review: Some(Review::Token),
    is_exempt_from_policies: true,
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
