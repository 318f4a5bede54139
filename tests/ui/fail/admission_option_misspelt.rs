//! As kubebuilder's marker writes it.
use kctl::prelude::*;

#[admission(validate, failurePolicy = Ignore)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
