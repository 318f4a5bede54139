//! A default is JSON.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(default = String::new())]
    pub name: String,
}

fn main() {}
