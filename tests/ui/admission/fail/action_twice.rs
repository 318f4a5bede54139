//! One function can't both validate and mutate.
use kctl::prelude::*;

#[admission(validate, mutate)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
