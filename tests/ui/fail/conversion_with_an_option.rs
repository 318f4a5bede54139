//! Which version is the hub follows from the functions.
use kctl::prelude::*;

#[conversion(hub = v1)]
fn up(old: Deployment) -> Result<ReplicaSet> {
    let _ = old;
    unreachable!()
}

fn main() {}
