//! A list is read as a whole.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.containers[0])]
    main: Option<Container>,
}

fn main() {}
