//! Changes of a validating function would be lost.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &mut Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
