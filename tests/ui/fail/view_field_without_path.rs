//! Something has to say where a field is.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    node: Option<String>,
}

fn main() {}
