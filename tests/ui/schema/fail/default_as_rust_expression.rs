//! A default is a JSON value, not an expression.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(default = String::new())]
    pub name: String,
}

fn main() {}
