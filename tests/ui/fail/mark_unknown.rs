//! A mark that is none.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(colour = "red")]
    pub name: String,
}

fn main() {}
