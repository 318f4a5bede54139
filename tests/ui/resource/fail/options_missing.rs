//! A kind needs a group, a version and a name.
use kctl::prelude::*;

#[resource]
pub struct WebSpec {
    pub host: String,
}

fn uses(web: &Web) -> &str {
    &web.spec.host
}

fn main() {}
