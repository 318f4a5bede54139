//! Values are spelled as in the webhook configuration: `Ignore`.
use kctl::prelude::*;

#[admission(validate, failure_policy = ignore)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
