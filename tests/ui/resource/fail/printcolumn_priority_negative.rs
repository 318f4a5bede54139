//! The priority of a column is 0 or more.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas", priority = -1)
)]
pub struct WebSpec {
    pub replicas: i32,
}

fn main() {}
