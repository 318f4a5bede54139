//! A field has a type that nobody marked: one mistake, although six derives miss it.
use kctl::prelude::*;

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
pub struct WebSpec {
    pub ports: Option<Vec<Port>>,
}

/// A port of the server.
#[derive(Clone, Default)]
pub struct Port {
    pub number: u16,
}

pub fn number(web: &Web) -> Option<u16> {
    Some(web.spec.ports.as_ref()?.first()?.number)
}

fn main() {}
