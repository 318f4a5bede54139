//! `allowed` takes its values in parentheses.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(allowed = "a")]
    pub name: String,
}

fn main() {}
