//! API servers reject this group.
use kctl::prelude::*;

#[resource(group = "Example_Com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
