//! A kind needs a name.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", namespaced)]
pub struct GreetingSpec {
    pub name: String,
}

fn main() {}
