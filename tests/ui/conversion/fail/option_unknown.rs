//! The versions follow from the signature; the attribute has no option for them.
use kctl::prelude::*;

#[conversion(hub = v1)]
fn up(old: Deployment) -> Result<ReplicaSet> {
    let _ = old;
    unreachable!()
}

fn main() {}
