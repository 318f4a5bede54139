//! `list = map` needs the keys of its items.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(list = map)]
    pub hosts: Vec<String>,
}

fn main() {}
