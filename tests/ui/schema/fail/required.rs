//! A field is required unless it is an `Option`.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(required)]
    pub name: String,
}

fn main() {}
