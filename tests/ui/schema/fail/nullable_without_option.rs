//! A field that may be null is an `Option`.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(nullable = true)]
    pub name: String,
}

fn main() {}
