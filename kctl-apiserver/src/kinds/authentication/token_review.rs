//! `TokenReview` of `authentication.k8s.io`: returns the user of a token.
//!
//! Webhooks and aggregated servers create one to learn the user of a bearer token.
//!
//! Upstream: `pkg/registry/authentication/tokenreview/storage.go`.

use crate::registry::kind::{Kind, Review};

pub(crate) static KIND: Kind = Kind::review("authentication.k8s.io", "tokenreviews", "TokenReview", Review::Token);
