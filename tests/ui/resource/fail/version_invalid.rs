//! API servers reject this version.
use kctl::prelude::*;

#[resource(group = "example.com", version = "1.0", kind = "Web", namespaced)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
