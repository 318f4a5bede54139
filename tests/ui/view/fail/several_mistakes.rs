//! All mistakes are reported at once, one error for each.
use kctl::prelude::*;

#[view(off = Pod)]
struct Placed {
    node: Option<String>,
    #[view("spec.phase")]
    phase: Option<String>,
}

fn main() {}
