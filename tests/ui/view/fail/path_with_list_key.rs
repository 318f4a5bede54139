//! A list has no keys.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.containers["main"])]
    main: Option<Container>,
}

fn main() {}
