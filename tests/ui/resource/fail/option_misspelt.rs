//! The option is `namespaced`, not `namespace`.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespace)]
pub struct WebSpec {
    pub host: String,
}

fn main() {}
