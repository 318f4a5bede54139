//! No number is at least 5 and at most 1.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(minimum = 5, maximum = 1)]
    pub count: i32,
}

fn main() {}
