//! A pattern is written.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(pattern)]
    pub name: String,
}

fn main() {}
