//! The marker Enum has another name here.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(enum("a", "b"))]
    pub name: String,
}

fn main() {}
