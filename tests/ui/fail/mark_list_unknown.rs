//! Lists are atomic, sets or maps.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(list = bag)]
    pub hosts: Vec<String>,
}

fn main() {}
