//! `allowed()` lists no value.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(allowed())]
    pub name: String,
}

fn main() {}
