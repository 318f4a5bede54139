//! All mistakes are reported at once, one error for each.
use kctl::prelude::*;

#[admission(validate, timeout = 0, side_effects = Some, nme = 1)]
fn rules(_object: Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
