//! The attribute goes on a struct.
use kctl::prelude::*;

#[view(of = Pod)]
enum Placed {
    Here,
}

fn main() {}
