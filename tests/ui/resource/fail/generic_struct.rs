//! A kind has no type parameters.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec<T> {
    pub host: T,
}

fn main() {}
