//! Each field needs its path.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    node: Option<String>,
}

fn main() {}
