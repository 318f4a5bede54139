//! The object is borrowed.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
