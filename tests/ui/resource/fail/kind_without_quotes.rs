//! `kind` takes a string.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = Web, namespaced)]
pub struct WebSpec {
    pub host: String,
}

fn uses(web: &Web) -> &str {
    &web.spec.host
}

fn main() {}
