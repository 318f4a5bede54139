//! A conversion takes the object by value.
use kctl::prelude::*;

#[conversion]
fn up(old: &Deployment) -> Result<ReplicaSet> {
    let _ = old;
    unreachable!()
}

fn main() {}
