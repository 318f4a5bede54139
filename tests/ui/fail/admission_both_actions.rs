//! One function does one of the two.
use kctl::prelude::*;

#[admission(validate, mutate)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
