//! The request is about the same kind.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &Deployment, _request: &Admission<Pod>) -> Result<()> {
    Ok(())
}

fn main() {}
