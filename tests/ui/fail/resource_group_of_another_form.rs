//! A group that no API server takes.
use kctl::prelude::*;

#[resource(group = "Example_Com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
