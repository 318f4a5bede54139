//! `#[schema]` does not see a derive above it, so both would derive the traits.
use kctl::prelude::*;

#[derive(Clone, Debug)]
/// A part of two derives.
#[derive(PartialEq)]
#[schema]
pub struct Part {
    pub count: i32,
}

fn main() {}
