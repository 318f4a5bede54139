//! A marker is given once.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(min_length = 1, min_length = 2)]
    pub name: String,
}

fn main() {}
