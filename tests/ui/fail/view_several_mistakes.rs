//! All mistakes are said at once.
use kctl::prelude::*;

#[view(off = Pod)]
struct Placed {
    node: Option<String>,
    #[view("spec.phase")]
    phase: Option<String>,
}

fn main() {}
