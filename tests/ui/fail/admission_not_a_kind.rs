//! A spec is no object.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_spec: &PodSpec) -> Result<()> {
    Ok(())
}

fn main() {}
