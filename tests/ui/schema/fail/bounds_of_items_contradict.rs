//! Markers within `items(…)` are checked, too.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(items(min_length = 5, max_length = 1))]
    pub hosts: Vec<String>,
}

fn main() {}
