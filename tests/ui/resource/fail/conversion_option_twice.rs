//! An option of `conversion` is given once.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    conversion(service = "a", service = "b", namespace = "webs")
)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
