//! A field behind an optional one is an `Option`.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: String,
}

fn main() {}
