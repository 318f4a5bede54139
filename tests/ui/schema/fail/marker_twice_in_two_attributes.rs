//! A marker is given once, in all attributes of a field together.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(default = 3)]
    #[kctl(default = 99, maximum = 10)]
    pub name: i32,
}

fn main() {}
