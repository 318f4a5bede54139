//! Only what mutates is asked again.
use kctl::prelude::*;

#[admission(validate, reinvocation = IfNeeded)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
