//! A kind with markers, optional fields and rules.
use kctl::prelude::*;

/// A web site.
#[resource(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus",
    rule("self.metadata.name.size() < 20", message = "the name is too long")
)]
#[derive(Default, Clone)]
#[kctl(rule("self.min <= self.max"))]
pub struct SiteSpec {
    #[kctl(min_length = 1, pattern = "^[a-z]+$")]
    pub host: String,
    /// Replicas at night.
    #[kctl(minimum = 0)]
    pub min: Option<i32>,
    pub mode: Option<Mode>,
}
