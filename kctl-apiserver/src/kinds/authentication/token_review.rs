//! `TokenReview` of `authentication.k8s.io`: returns the user of a token.
//!
//! Webhooks and aggregated servers create one to learn the user of a bearer token.
//!
//! The kind is a review: it is answered and never stored. It can only be created, it does not count
//! in quotas, and admission policies do not see it.
//!
//! Upstream: `pkg/registry/authentication/tokenreview/storage.go`.

use crate::registry::kind::{Kind, Quota, Requests, Review};

pub(crate) static KIND: Kind = Kind {
    group: "authentication.k8s.io",
    resource: "tokenreviews",
    kind: "TokenReview",
    requests: Requests { is_exempt_from_policies: true, review: Some(Review::Token), ..Requests::DEFAULT },
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
