//! `min_length` is misspelt.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(min_lenght = 1)]
    pub name: String,
}

fn main() {}
