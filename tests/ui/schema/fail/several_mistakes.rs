//! All mistakes are reported at once, one error for each.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(min_lenght = 1)]
    pub name: String,
    #[kctl(list = bag)]
    pub hosts: Vec<String>,
}

fn main() {}
