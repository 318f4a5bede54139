//! A spec is not a Kubernetes kind.
use kctl::prelude::*;

#[conversion]
fn up(_old: PodSpec) -> Result<Pod> {
    unreachable!()
}

fn main() {}
