//! A conversion webhook needs a Service or a URL.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced, conversion(path = "/convert"))]
pub struct WebSpec {
    pub host: String,
}

fn main() {}
