//! All mistakes of all fields are told at once.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(min_lenght = 1)]
    pub name: String,
    #[kctl(list = bag)]
    pub hosts: Vec<String>,
}

fn main() {}
