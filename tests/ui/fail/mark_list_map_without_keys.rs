//! Items of a map are told apart by keys.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(list = map)]
    pub hosts: Vec<String>,
}

fn main() {}
