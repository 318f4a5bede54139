//! A status that nobody marked, and a part that two types name: each is told once.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced, status = "WebStatus")]
pub struct WebSpec {
    pub port: Port,
}

pub struct WebStatus {
    pub ready: i32,
}

#[schema]
pub struct Route {
    pub port: Port,
}

pub enum Port {
    Plain,
    Secure,
}

fn main() {}
