//! kubebuilder's marker has `path`; here the path follows from the kind.
use kctl::prelude::*;

#[admission(validate, path = "/rules")]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
