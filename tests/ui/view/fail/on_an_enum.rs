//! The attribute must be applied to a struct.
use kctl::prelude::*;

#[view(of = Pod)]
enum Placed {
    Here,
}

fn main() {}
