//! A kind is one type.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec<T> {
    pub host: T,
}

fn main() {}
