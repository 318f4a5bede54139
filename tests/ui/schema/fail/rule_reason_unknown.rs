//! API servers accept four reasons.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(rule("self != ''", reason = Empty))]
    pub name: String,
}

fn main() {}
