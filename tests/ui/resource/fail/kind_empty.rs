//! A kind has a name.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "", namespaced)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
