//! Columns have the types of the API, not Rust's.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    printcolumn(name = "Replicas", type_ = "int", json_path = ".spec.replicas")
)]
pub struct WebSpec {
    pub replicas: i32,
}

fn main() {}
