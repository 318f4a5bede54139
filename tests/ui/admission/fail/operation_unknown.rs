//! A patch is an `update` for admission.
use kctl::prelude::*;

#[admission(validate, operations(create, patch))]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
