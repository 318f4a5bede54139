//! `pattern` needs a value.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(pattern)]
    pub name: String,
}

fn main() {}
