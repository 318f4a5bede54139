//! An option of `docs` is given once.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(docs(url = "https://example.com/a", url = "https://example.com/b"))]
    pub name: String,
}

fn main() {}
