//! Kubebuilder's marker has `failurePolicy`; here it is `failure_policy`.
use kctl::prelude::*;

#[admission(validate, failurePolicy = Ignore)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
