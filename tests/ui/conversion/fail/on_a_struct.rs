//! The attribute goes on a function.
use kctl::prelude::*;

#[conversion]
struct Up;

fn main() {}
