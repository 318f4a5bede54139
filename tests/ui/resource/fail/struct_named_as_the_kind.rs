//! The struct is the spec; the attribute makes the kind.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Site", namespaced)]
pub struct Site {
    pub replicas: i32,
}

fn main() {}
