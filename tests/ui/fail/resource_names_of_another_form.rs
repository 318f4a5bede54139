//! A version and a group that no API server takes.
use kctl::prelude::*;

#[resource(group = "Example_Com", version = "1.0", kind = "Web", namespaced)]
pub struct WebSpec {
    pub port: u16,
}

fn main() {}
