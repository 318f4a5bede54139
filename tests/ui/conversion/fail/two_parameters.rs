//! A conversion takes the object alone.
use kctl::prelude::*;

#[conversion]
fn up(_old: Deployment, _version: &str) -> Result<ReplicaSet> {
    unreachable!()
}

fn main() {}
