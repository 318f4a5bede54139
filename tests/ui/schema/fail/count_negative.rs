//! A list can't have fewer than 0 items.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(max_items = -1)]
    pub hosts: Vec<String>,
}

fn main() {}
