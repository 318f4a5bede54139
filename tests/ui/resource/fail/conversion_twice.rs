//! A CRD has one conversion.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    conversion(url = "https://example.com/a"),
    conversion(url = "https://example.com/b")
)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
