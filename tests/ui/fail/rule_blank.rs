//! A rule says something.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule(""))]
    pub name: String,
}

fn main() {}
