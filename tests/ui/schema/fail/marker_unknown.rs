//! `colour` is not a marker.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(colour = "red")]
    pub name: String,
}

fn main() {}
