//! The attribute must be applied to a function.
use kctl::prelude::*;

#[conversion]
struct Up;

fn main() {}
