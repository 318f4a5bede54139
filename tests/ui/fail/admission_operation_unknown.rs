//! API servers know no `patch`: it is an update.
use kctl::prelude::*;

#[admission(validate, operations(create, patch))]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
