//! A field that is left out of the JSON needs `#[serde(default)]`, or the CRD requires it.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

fn main() {}
