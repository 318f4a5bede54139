//! The status type needs `#[schema]`.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced, status = "WebStatus")]
pub struct WebSpec {
    pub port: i32,
}

pub struct WebStatus {
    pub ready: i32,
}

fn main() {}
