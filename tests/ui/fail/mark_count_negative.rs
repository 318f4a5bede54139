//! There are never less than none.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(max_items = -1)]
    pub hosts: Vec<String>,
}

fn main() {}
