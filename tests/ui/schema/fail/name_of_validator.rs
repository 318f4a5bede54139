//! `min` is the name of other validators for `minimum`.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", namespaced)]
pub struct SiteSpec {
    #[kctl(min = 0)]
    pub replicas: i32,
}

fn main() {}
