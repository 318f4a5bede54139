//! An option of a CRD is given once.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    status = "WebStatus",
    status_subresource = true,
    status_subresource = false
)]
pub struct WebSpec {
    pub port: i32,
}

#[schema]
pub struct WebStatus {
    pub ready: bool,
}

fn main() {}
