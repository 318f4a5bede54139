//! An option of a rule is given once.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule("self != 'a'", message = "not a", message = "not b"))]
    pub name: String,
}

fn main() {}
