//! API servers reinvoke mutating webhooks only.
use kctl::prelude::*;

#[admission(validate, reinvocation = IfNeeded)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
