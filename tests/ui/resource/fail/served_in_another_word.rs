//! A switch is `true` or `false`, as in Rust.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", served = no)]
pub struct WebSpec {
    pub replicas: i32,
}

fn main() {}
