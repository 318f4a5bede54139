//! A spec is not a Kubernetes kind.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_spec: &PodSpec) -> Result<()> {
    Ok(())
}

fn main() {}
