//! One reference is enough.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &&Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
