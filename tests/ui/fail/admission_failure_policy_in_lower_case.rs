//! Words of the API are written as the API writes them.
use kctl::prelude::*;

#[admission(validate, failure_policy = ignore)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
