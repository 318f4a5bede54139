//! Each view has `metadata` without a field for it.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(metadata)]
    metadata: ObjectMeta,
}

fn main() {}
