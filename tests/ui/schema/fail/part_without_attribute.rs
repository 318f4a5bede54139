//! A field's type lacks `#[schema]`: one error instead of one for each of six derives.
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
