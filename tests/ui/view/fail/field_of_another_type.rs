//! A field has the type that the kind has there.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<i32>,
}

fn main() {}
