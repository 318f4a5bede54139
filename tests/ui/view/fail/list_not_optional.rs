//! A list behind an optional field is an `Option`, too.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.containers)]
    containers: Vec<Container>,
}

fn main() {}
