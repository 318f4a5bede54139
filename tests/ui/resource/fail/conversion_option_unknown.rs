//! `conversion(…)` has the option `port`, not `prt`.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced, conversion(service = "a", namespace = "b", prt = 1))]
pub struct WebSpec {
    pub host: String,
}

fn main() {}
