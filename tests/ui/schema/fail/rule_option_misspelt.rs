//! `message` is misspelt.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule("self != ''", mesage = "empty"))]
    pub name: String,
}

fn main() {}
