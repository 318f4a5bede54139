//! A rule needs an expression.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule(""))]
    pub name: String,
}

fn main() {}
