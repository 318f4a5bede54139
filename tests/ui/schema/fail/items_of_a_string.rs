//! A string has no items, so their markers would be lost.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(items(min_length = 1))]
    pub name: String,
}

fn main() {}
