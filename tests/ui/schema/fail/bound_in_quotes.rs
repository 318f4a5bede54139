//! A bound is a number, not a string.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(minimum = "1")]
    pub count: i32,
}

fn main() {}
