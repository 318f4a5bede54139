//! `TokenReview` of `authentication.k8s.io`: returns the user of a token.
//! Webhooks and aggregated servers create one to learn the user of a bearer token. The kind is a review: it is answered
//! and never stored. It can only be created, it does not count in quotas, and admission policies do not see it.
//! Upstream: `pkg/registry/authentication/tokenreview/storage.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind = Kind::review("authentication.k8s.io", "tokenreviews", "TokenReview", Review::Token);
