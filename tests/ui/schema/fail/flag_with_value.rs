//! `immutable` is a flag and takes no value.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(immutable = true)]
    pub name: String,
}

fn main() {}
