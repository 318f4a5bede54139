//! A list is `atomic`, `set` or `map`.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(list = bag)]
    pub hosts: Vec<String>,
}

fn main() {}
