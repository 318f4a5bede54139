//! A CEL expression is a string.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule(self != ""))]
    pub name: String,
}

fn main() {}
