//! controller-gen's `enum` is `allowed` here.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(enum("a", "b"))]
    pub name: String,
}

fn main() {}
