//! What is immutable is so.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(immutable = true)]
    pub name: String,
}

fn main() {}
