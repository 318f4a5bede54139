//! An option of a CRD is given once.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    status_subresource = true,
    status_subresource = false
)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
