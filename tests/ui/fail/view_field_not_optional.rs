//! What may be left out on the way is an `Option`.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: String,
    #[view(spec.containers)]
    containers: Vec<Container>,
}

fn main() {}
