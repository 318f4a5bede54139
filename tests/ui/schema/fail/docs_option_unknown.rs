//! `docs(…)` has the option `url`, not `link`.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(docs(link = "https://example.com"))]
    pub name: String,
}

fn main() {}
