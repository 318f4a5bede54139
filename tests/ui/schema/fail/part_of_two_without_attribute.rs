//! A part that two types name is reported once.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec {
    pub port: Port,
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
