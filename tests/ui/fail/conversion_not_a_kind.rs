//! A spec is no object.
use kctl::prelude::*;

#[conversion]
fn up(_old: PodSpec) -> Result<Pod> {
    unreachable!()
}

fn main() {}
