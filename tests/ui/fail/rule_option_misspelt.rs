//! Options of rules have names.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule("self != ''", mesage = "empty"))]
    pub name: String,
}

fn main() {}
