//! The path of the framework is not a string.
use kctl::prelude::*;

#[conversion(crate = "kctl")]
fn up(old: Deployment) -> Result<ReplicaSet> {
    let _ = old;
    unreachable!()
}

fn main() {}
