//! A view is of one kind.
use kctl::prelude::*;

#[view(of = Pod, of = ConfigMap)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
}

fn main() {}
