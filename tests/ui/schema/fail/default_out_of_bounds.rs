//! The default is below `minimum`.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(minimum = 5, default = 1)]
    pub count: i32,
}

fn main() {}
