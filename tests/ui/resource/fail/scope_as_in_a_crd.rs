//! `namespaced` is a flag; `scope` is not an option.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", scope = "Namespaced")]
pub struct SiteSpec {
    pub replicas: i32,
}

fn main() {}
