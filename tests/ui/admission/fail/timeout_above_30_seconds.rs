//! API servers wait 30 seconds at most.
use kctl::prelude::*;

#[admission(validate, timeout = 60)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
