//! The object is the function's own: it takes it apart.
use kctl::prelude::*;

#[conversion]
fn up(old: &Deployment) -> Result<ReplicaSet> {
    let _ = old;
    unreachable!()
}

fn main() {}
