//! A path of a column starts at the object, with a dot.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    printcolumn(name = "Replicas", type_ = "integer", json_path = "spec.replicas")
)]
pub struct WebSpec {
    pub replicas: i32,
}

fn main() {}
