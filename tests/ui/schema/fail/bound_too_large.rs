//! A bound is a number that JSON parsers read.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(maximum = 1e999)]
    pub count: f64,
}

fn main() {}
