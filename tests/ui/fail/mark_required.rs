//! What is required says its type.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(required)]
    pub name: String,
}

fn main() {}
