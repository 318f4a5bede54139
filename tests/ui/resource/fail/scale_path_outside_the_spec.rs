//! API servers read the number of replicas below `.spec`.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    status = "WebStatus",
    scale(spec_replicas_path = ".replicas", status_replicas_path = ".status.replicas")
)]
pub struct WebSpec {
    pub replicas: i32,
}

#[schema]
pub struct WebStatus {
    pub replicas: i32,
}

fn main() {}
