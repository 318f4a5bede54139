//! Each view has its metadata.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(metadata)]
    metadata: ObjectMeta,
}

fn main() {}
