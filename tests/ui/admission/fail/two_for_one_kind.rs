//! Two functions would have the same path.
use kctl::prelude::*;

#[admission(validate)]
fn one(_object: &Deployment) -> Result<()> {
    Ok(())
}

#[admission(validate)]
fn two(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
