//! Each operation is given once.
use kctl::prelude::*;

#[admission(validate, operations(update, update))]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
