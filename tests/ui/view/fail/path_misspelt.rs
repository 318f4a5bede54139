//! The compiler checks the path of a field.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_nam)]
    node: Option<String>,
}

fn main() {}
