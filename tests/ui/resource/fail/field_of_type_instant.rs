//! An `Instant` can't be stored: it means nothing to another process.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", namespaced)]
pub struct SiteSpec {
    pub started: std::time::Instant,
}

fn main() {}
