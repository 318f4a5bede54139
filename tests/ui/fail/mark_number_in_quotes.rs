//! Bounds are numbers.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(minimum = "1")]
    pub count: i32,
}

fn main() {}
